//! Certificates that last as long as one control plane.

use std::{
    io,
    net::{IpAddr, Ipv4Addr},
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};

/// An authority that signs for servers on the loopback address.
pub(super) struct Authority {
    /// PEM.
    pub(super) certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A server's certificate and key.
pub(super) struct Identity {
    /// PEM.
    pub(super) certificate: String,
    /// PEM.
    pub(super) key: String,
}

impl Authority {
    pub(super) fn new() -> io::Result<Self> {
        let mut params = CertificateParams::new(Vec::new()).map_err(io::Error::other)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let certificate = params.self_signed(&key).map_err(io::Error::other)?.pem();
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    /// A certificate for these names and the loopback address.
    pub(super) fn sign(&self, hosts: &[String]) -> io::Result<Identity> {
        let mut params = CertificateParams::new(hosts).map_err(io::Error::other)?;
        params.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(io::Error::other)?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}
