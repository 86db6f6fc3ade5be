//! Tests against a real etcd and kube-apiserver, one set for each release in `tests/control-plane/`.
//!
//! - `cargo test --test e2e` runs them; `v1.36::` as a filter runs those of one release.
//! - `cargo test --test e2e -- --prepare` builds what is missing and runs nothing.
//! - `cargo test --test e2e -- --serve v1.36` keeps one running, with the cluster before the upgrade.
//!
//! Without binaries to run they are left out, which is said; with `SBX_REQUIRE_CONTROL_PLANE=1` that is a failure.

#![allow(clippy::disallowed_types, reason = "the tests reach the server past the program")]
#![allow(unreachable_pub, reason = "a test binary exports nothing; `pub` says what a module offers to the others")]
#![allow(clippy::print_stderr, clippy::print_stdout, reason = "what a person starts by hand answers on the terminal")]

mod before;
mod by_hand;
mod conformance;
mod control_plane;
mod init;
mod rights;
mod serve;
mod snapshot;
mod step_kinds;
#[path = "../conformance/suite/mod.rs"]
mod suite;
#[path = "../support/mod.rs"]
mod support;
mod upgrade;

use std::env;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

use support::Result;
use support::control_plane::{Origin, Release, binaries, origin, required};
use support::fixture::{Fixture, Truth};

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let outcome = match words.first().map(String::as_str) {
        Some("--prepare") => prepare().map(|()| ExitCode::SUCCESS),
        Some("--serve") => serve::serve(&words[1..]).map(|()| ExitCode::SUCCESS),
        _ => test(),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}

/// Builds the binaries of every release that has none yet.
fn prepare() -> Result<()> {
    for release in Release::all()? {
        println!("{release}: {}", binaries(&release)?.api_server.display());
    }
    Ok(())
}

fn test() -> Result<ExitCode> {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    let mut left_out = Vec::new();
    for release in Release::all()? {
        let missing = match origin(&release) {
            Origin::Nowhere(why) => Some(why),
            _ => None,
        };
        let scenarios = scenarios(&release)?;
        if let Some(why) = &missing {
            left_out.push(format!("{} tests on Kubernetes {release}: {why}", scenarios.len()));
        }
        trials.extend(scenarios.into_iter().map(|trial| trial.with_ignored_flag(missing.is_some())));
    }
    if !Truth::Upstream.present() {
        left_out.push("every test on upstream's own CRDs: ../shared/data/agent-sandbox is not there".into());
    }
    if !left_out.is_empty() && !arguments.list {
        eprintln!("\nLEFT OUT: {}", left_out.join("\nLEFT OUT: "));
        eprintln!("Kubernetes comes from `go` on the PATH, or from KUBEBUILDER_ASSETS (etcd and kube-apiserver).\n");
        if required() {
            return Err("SBX_REQUIRE_CONTROL_PLANE is set: no test may be left out".into());
        }
    }
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

/// Every test on one release.
fn scenarios(release: &Release) -> Result<Vec<Trial>> {
    let mut trials = control_plane::scenarios(release);
    trials.extend(conformance::scenarios(release)?);
    trials.extend(init::scenarios_from_nothing(release));
    trials.extend(snapshot::scenarios_from_nothing(release));
    for truth in [Truth::Small, Truth::Upstream].into_iter().filter(|truth| truth.present()) {
        trials.extend(before::scenarios(release, truth));
        trials.extend(by_hand::scenarios(release, truth));
        trials.extend(snapshot::scenarios(release, truth));
        trials.extend(init::scenarios(release, truth));
        trials.extend(rights::scenarios(release, truth));
        trials.extend(step_kinds::scenarios(release, truth));
        trials.extend(upgrade::scenarios(release, truth));
    }
    Ok(trials)
}

/// One test on one release, in a runtime of its own.
fn scenario<F>(release: &Release, name: &str, run: fn(Release) -> F) -> Trial
where
    F: Future<Output = Result<()>> + 'static,
{
    let owned = release.clone();
    Trial::test(format!("{}::{name}", release.name), move || Ok(runtime()?.block_on(run(owned))?))
}

/// One test on the cluster before the upgrade, of one release and with the CRDs of `truth`.
fn fixture_scenario<F>(release: &Release, truth: Truth, name: &str, run: fn(Fixture) -> F) -> Trial
where
    F: Future<Output = Result<()>> + 'static,
{
    let owned = release.clone();
    let name = format!("{}::{truth:?}::{name}", release.name).to_lowercase();
    Trial::test(name, move || Ok(runtime()?.block_on(async { run(Fixture::start(&owned, truth).await?).await })?))
}

/// More than one thread: the webhook answers while a test waits for a program.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}
