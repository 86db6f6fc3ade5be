//! The files a control plane is started with: certificates, tokens, the audit policy, kubeconfigs.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::{fs, io};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};

/// Who may sign in, and the groups of each. `cluster` stands for whoever set the cluster up long ago: its requests
/// are never mistaken for those of `admin`, the person who runs `sbx`.
pub const USERS: &[(&str, &str)] = &[
    ("admin", "system:masters"),
    ("cluster", "system:masters"),
    ("argocd", "system:masters"),
    ("controller", "system:masters"),
    ("flickerd", "system:masters"),
    ("garrison", "system:masters"),
    ("reader", "readers"),
    ("operator", "operators"),
    ("nobody", "strangers"),
];

/// The context that the shipped runbook names.
pub const CONTEXT: &str = "admin@pitower";

/// Everything is logged once, when answered; the API server's own requests are not.
const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: ['system:apiserver']
- level: Metadata
";

/// The files by name, in the folder of one control plane.
#[derive(Debug)]
pub struct Files {
    root: PathBuf,
}

impl Files {
    /// Writes what must be there before the servers start.
    pub fn write(root: &Path) -> io::Result<Self> {
        let files = Self { root: root.to_owned() };
        let (ca, certificate, key) = certificates().map_err(io::Error::other)?;
        fs::write(files.path("ca.crt"), ca)?;
        fs::write(files.path("server.crt"), certificate)?;
        fs::write(files.path("server.key"), key)?;
        let tokens: Vec<_> =
            USERS.iter().map(|(user, group)| format!("{},{user},{user},\"{group}\"", token(user))).collect();
        fs::write(files.path("tokens.csv"), tokens.join("\n"))?;
        fs::write(files.path("audit-policy.yaml"), AUDIT_POLICY)?;
        Ok(files)
    }

    /// The path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Writes a kubeconfig for `user` and returns its path. The context is always [`CONTEXT`].
    pub fn kubeconfig(&self, user: &str, server: &str) -> io::Result<PathBuf> {
        let path = self.path(&format!("{user}.kubeconfig"));
        let ca = self.path("ca.crt");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: {CONTEXT}\n\
             clusters:\n- name: pitower\n  cluster: {{server: \"{server}\", certificate-authority: \"{ca}\"}}\n\
             users:\n- name: {user}\n  user: {{token: {token}}}\n\
             contexts:\n- name: {CONTEXT}\n  context: {{cluster: pitower, user: {user}}}\n",
            ca = ca.display(),
            token = token(user),
        );
        // Never rewritten: whoever reads it now must find it whole.
        if !path.exists() {
            fs::write(&path, text)?;
        }
        Ok(path)
    }
}

fn token(user: &str) -> String {
    format!("{user}-token")
}

/// An authority, and a certificate for the loopback address signed by it, with its key: all PEM.
fn certificates() -> Result<(String, String, String), rcgen::Error> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate()?;
    let ca = authority.self_signed(&authority_key)?.pem();
    let mut server = CertificateParams::new(vec!["localhost".into()])?;
    server.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    let key = KeyPair::generate()?;
    let certificate = server.signed_by(&key, &Issuer::new(authority, authority_key))?.pem();
    Ok((ca, certificate, key.serialize_pem()))
}
