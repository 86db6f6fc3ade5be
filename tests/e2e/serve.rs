//! The cluster before the upgrade, to try things by hand.

use std::io::{Read, Write};

use crate::support::Result;
use crate::support::control_plane::{ControlPlane, Release, USERS};
use crate::support::fixture::{Fixture, Truth};

/// Runs until standard input ends or Ctrl-C. The words name the release and what is in the cluster: `upstream`,
/// `small` or `bare`.
pub fn serve(words: &[String]) -> Result<()> {
    let release = Release::named(words.first().map_or("v1.36", String::as_str))?;
    let truth = match words.get(1).map(String::as_str) {
        Some("bare") => None,
        Some("upstream") => Some(Truth::Upstream),
        None if Truth::Upstream.present() => Some(Truth::Upstream),
        Some("small") | None => Some(Truth::Small),
        Some(word) => return Err(format!("`{word}` is none of upstream, small, bare").into()),
    };
    crate::runtime()?.block_on(async {
        if let Some(truth) = truth {
            let fixture = Fixture::start(&release, truth).await?;
            announce(&fixture.plane)?;
            ended().await?;
        } else {
            let plane = ControlPlane::start(&release).await?;
            announce(&plane)?;
            ended().await?;
        }
        // The thread may still read: leave without waiting for it.
        std::process::exit(0)
    })
}

fn announce(plane: &ControlPlane) -> Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "Kubernetes {} at {}, its files in {}", plane.release, plane.url(), plane.folder().display())?;
    for (user, _) in USERS.iter().rev() {
        writeln!(output, "KUBECONFIG={}", plane.kubeconfig(user)?.display())?;
    }
    writeln!(output, "Runs until standard input ends or Ctrl-C.")?;
    Ok(())
}

async fn ended() -> Result<()> {
    let (ended, end) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = ended.send(());
    });
    tokio::select! {
        _ = end => Ok(()),
        interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
    }
}
