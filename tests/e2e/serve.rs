//! A control plane to try things by hand.

use std::io::Read;

use crate::support::Result;
use crate::support::control_plane::{ControlPlane, Release, USERS};

/// Runs one until standard input ends or Ctrl-C.
pub fn serve(name: Option<&str>) -> Result<()> {
    let release = Release::named(name.unwrap_or("v1.36"))?;
    crate::runtime()?.block_on(async {
        let plane = ControlPlane::start(&release).await?;
        println!("Kubernetes {release} at {}, its files in {}", plane.url(), plane.folder().display());
        for (user, _) in USERS.iter().rev() {
            println!("KUBECONFIG={}", plane.kubeconfig(user)?.display());
        }
        println!("Runs until standard input ends or Ctrl-C.");
        let (ended, end) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            let _ = ended.send(());
        });
        tokio::select! {
            _ = end => {}
            interrupted = tokio::signal::ctrl_c() => interrupted?,
        }
        drop(plane);
        // The thread may still read: leave without waiting for it.
        std::process::exit(0)
    })
}
