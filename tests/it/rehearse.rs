//! `sbx rehearse`: what goes wrong is the step that was named, and what is reported is what was done.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

/// Exit code, stdout, stderr.
fn rehearse(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let ran = Command::new(env!("CARGO_BIN_EXE_sbx"))
        .arg("rehearse")
        .args(args)
        .current_dir(folder)
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null())
        .output()
        .expect("the program runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (ran.status.code().unwrap_or(-1), text(ran.stdout), text(ran.stderr))
}

fn here(args: &[&str]) -> (i32, String, String) {
    rehearse(Path::new(env!("CARGO_MANIFEST_DIR")), &[&["runbooks/v1.0.0.toml"], args].concat())
}

/// The first run's last words, up to where it is put right.
fn first_ending(out: &str) -> &str {
    let (before, _) = out.split_once("what went wrong is put right").expect("something went wrong");
    let at = before.rfind("\nStopped at").or(before.rfind(" failed: ")).or(before.rfind("\nDeclined")).expect("an end");
    &before[before[..at].rfind('\n').unwrap_or_default()..]
}

#[test]
fn the_step_that_is_named_goes_wrong_and_the_rerun_goes_on() {
    for (step, words) in [
        ("flickerd", "Stopped at 1 gate; nothing that depends on it ran:\n  flickerd: generator v0.14.0"),
        ("writers", "Stopped at 1 gate; nothing that depends on it ran:\n  writers: last v1alpha1 write"),
        ("backup", "\nbackup failed: backup: list sandboxclaims.extensions.agents.x-k8s.io/v1beta1: 403 Forbidden"),
        ("migrate", "\nmigrate failed: sandboxwarmpools.extensions.agents.x-k8s.io: pass 1 rewrote 1, 1 failed"),
        ("owners", "\nowners failed: relabelled 7 of 8 children, 1 failed"),
        ("release", "\nrelease failed: "),
        ("merge", "\nmerge failed: argocd/pitower-ai-agent-sandbox Failed: "),
        (
            "controller",
            "Stopped at 1 gate; nothing that depends on it ran:\n  controller: agent-sandbox-controller v0.5.6",
        ),
        ("webhook-pruned", "Stopped at 1 gate; nothing that depends on it ran:\n  webhook-pruned: 3 of 3 still there"),
        ("webhook-certs", "\nwebhook-certs failed: 1 of 1 objects could not be deleted"),
        ("orphaned-claims", "\norphaned-claims failed: 1 of 3 objects could not be deleted"),
    ] {
        let (code, out, err) = here(&["--fail", step]);
        assert_eq!((code, err.as_str()), (0, ""), "{step}: {out}");
        assert!(first_ending(&out).contains(words), "{step}: {}", first_ending(&out));
        assert!(out.ends_with("Rehearsed to the end in 2 runs of apply.\n"), "{step}: {out}");
    }
}

#[test]
fn a_confirm_that_goes_wrong_is_declined() {
    let folder = tempfile::tempdir().expect("a folder");
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("runbooks/v1.0.0.toml");
    let text = fs::read_to_string(shipped).expect("shipped").replace("[\"owners\", \"release\"]", "[\"sure\"]");
    let sure = "\n[[step]]\nid = \"sure\"\nneeds = [\"owners\", \"release\"]\n[step.confirm]\nquestion = \"Is the backup away?\"\n";
    fs::write(folder.path().join("r.toml"), text + sure).expect("written");
    let (code, out, _) = rehearse(folder.path(), &["r.toml", "--fail", "sure"]);
    assert_eq!(code, 0, "{out}");
    assert!(first_ending(&out).contains("Declined Is the backup away?"), "{}", first_ending(&out));
    assert!(out.ends_with("Rehearsed to the end in 2 runs of apply.\n"), "{out}");
}

#[test]
fn what_cannot_go_wrong_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("runbooks/v1.0.0.toml");
    let text = fs::read_to_string(shipped).expect("shipped");
    // A release that is there: the gate is open from the start.
    let open = text.replace("image     = \">=0.15.0\"", "image     = \">=0.14.0\"");
    assert_ne!(open, text);
    fs::write(folder.path().join("r.toml"), open).expect("written");
    let (code, out, err) = rehearse(folder.path(), &["r.toml", "--fail", "flickerd"]);
    assert_eq!(code, 64, "{err}");
    assert!(!out.contains("sbx apply r.toml\n   (asked)"), "{out}");
    assert!(err.contains("--fail flickerd: it is met here"), "{err}");
    assert!(err.contains("those that can go wrong: garrison, writers, backup, migrate"), "{err}");

    let (code, out, err) = here(&["--fail", "releas"]);
    assert_eq!((code, out.as_str()), (64, ""), "{err}");
    assert!(err.contains("did you mean `release`?") && err.contains("the steps are flickerd, garrison"), "{err}");
}

#[test]
fn nobody_to_ask_is_said_before_anything_runs() {
    let (code, out, err) = here(&["--interactive"]);
    assert_eq!((code, out.as_str()), (5, ""), "{err}");
    assert!(err.contains("nobody can be asked") && err.contains("leave --interactive out"), "{err}");
    assert!(!err.contains("--yes"), "{err}");
}

#[test]
fn the_report_counts_each_object_once_and_only_what_was_done() {
    let report = |out: &str| {
        let at = out.find("\nWhat will happen").or(out.find("\nWhat was done")).expect("a report");
        let report = out[at..].split("\nWhat was not simulated").next().unwrap_or_default();
        report.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let (_, whole, _) = here(&[]);
    let whole = report(&whole);
    assert!(whole.contains(&"  change 4 CustomResourceDefinition (migrate, release)".to_owned()), "{whole:#?}");
    assert!(whole.contains(&"  delete 3 SandboxClaim (orphaned-claims)".to_owned()), "{whole:#?}");
    // A runbook that is blocked: nothing ran, so nothing was changed.
    let folder = tempfile::tempdir().expect("a folder");
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("runbooks/v1.0.0.toml");
    let text = fs::read_to_string(shipped).expect("shipped").replace("at-most   = 3", "at-most   = 2");
    fs::write(folder.path().join("r.toml"), text).expect("written");
    let (code, out, _) = rehearse(folder.path(), &["r.toml"]);
    assert_eq!(code, 1, "{out}");
    assert_eq!(report(&out), ["", "What was done, as far as it got", "  nothing: no step wrote anything"], "{out}");
}
