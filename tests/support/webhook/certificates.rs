//! The webhook's certificates: what the controller keeps in its Secret.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::support::Result;

/// An authority and two certificates by it: one that is valid, one that no longer is.
pub struct Certificates {
    /// The authority, PEM: the CRDs' `caBundle`.
    pub authority: String,
    /// One of the same name that has expired, PEM.
    pub expired_authority: String,
    /// The valid certificate, PEM.
    pub certificate: String,
    /// Its key, PEM.
    pub key: String,
    /// TLS with the valid certificate.
    pub valid: Arc<ServerConfig>,
    /// TLS with the one that has expired.
    pub expired: Arc<ServerConfig>,
}

impl Certificates {
    /// New ones for `host`.
    pub fn new(host: &str) -> Result<Self> {
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate()?;
        let bundle = authority.self_signed(&authority_key)?.pem();
        let expired_authority = in_the_past(authority.clone()).self_signed(&authority_key)?.pem();
        let issuer = Issuer::new(authority, authority_key);

        let key = KeyPair::generate()?;
        let valid = CertificateParams::new(vec![host.into()])?.signed_by(&key, &issuer)?;
        let expired = in_the_past(CertificateParams::new(vec![host.into()])?).signed_by(&key, &issuer)?;
        Ok(Self {
            authority: bundle,
            expired_authority,
            certificate: valid.pem(),
            key: key.serialize_pem(),
            valid: server(valid.der(), &key)?,
            expired: server(expired.der(), &key)?,
        })
    }
}

fn in_the_past(mut params: CertificateParams) -> CertificateParams {
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2021, 1, 1);
    params
}

fn server(certificate: &CertificateDer<'static>, key: &KeyPair) -> Result<Arc<ServerConfig>> {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    Ok(Arc::new(ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate.clone()], key)?))
}
