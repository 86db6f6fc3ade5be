//! The files a control plane is started with: certificates, tokens, the audit policy, kubeconfigs.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use super::{Users, certificates::Authority};

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
pub(super) struct Files {
    root: PathBuf,
    context: String,
    authority: String,
    /// What tokens are made from: nobody who cannot read the folder knows it.
    secret: String,
    /// Who asks whether the server is ready.
    first_user: String,
}

impl Files {
    /// Writes what must be there before the servers start.
    pub(super) fn write(root: &Path, users: &Users<'_>) -> io::Result<Self> {
        let authority = Authority::new()?;
        let identity = authority.sign(&["localhost".into()])?;
        let files = Self {
            root: root.to_owned(),
            context: users.context.into(),
            authority: authority.certificate,
            secret: identity.key.clone(),
            first_user: users.groups.first().map_or_else(String::new, |(user, _)| (*user).to_owned()),
        };
        fs::write(files.path("ca.crt"), &files.authority)?;
        fs::write(files.path("server.crt"), identity.certificate)?;
        fs::write(files.path("server.key"), identity.key)?;
        let tokens =
            users.groups.iter().map(|(user, group)| format!("{},{user},{user},\"{group}\"", files.token(user)));
        fs::write(files.path("tokens.csv"), tokens.collect::<Vec<_>>().join("\n"))?;
        fs::write(files.path("audit-policy.yaml"), AUDIT_POLICY)?;
        Ok(files)
    }

    /// The path of a file in the folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The first of those who may sign in.
    pub(super) fn first_user(&self) -> &str {
        &self.first_user
    }

    /// A kubeconfig that signs in as `user`.
    pub(super) fn kubeconfig(&self, user: &str, server: &str) -> String {
        let (context, token, ca) = (&self.context, self.token(user), self.path("ca.crt"));
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: {context}\n\
             clusters:\n- name: rehearsal\n  cluster: {{server: \"{server}\", certificate-authority: \"{ca}\"}}\n\
             users:\n- name: {user}\n  user: {{token: \"{token}\"}}\n\
             contexts:\n- name: {context}\n  context: {{cluster: rehearsal, user: {user}}}\n",
            ca = ca.display(),
        )
    }

    /// Writes that kubeconfig, and returns its path.
    pub(super) fn write_kubeconfig(&self, user: &str, server: &str) -> io::Result<PathBuf> {
        let path = self.path(&format!("{user}.kubeconfig"));
        // Never rewritten: whoever reads it now must find it whole.
        if !path.exists() {
            fs::write(&path, self.kubeconfig(user, server))?;
        }
        Ok(path)
    }

    fn token(&self, user: &str) -> String {
        let digest = Sha256::digest(format!("{user}\n{}", self.secret));
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
