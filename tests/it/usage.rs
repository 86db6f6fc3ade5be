//! The command line: what is typed, what stands in for it, and the streams.

use std::{
    fs,
    io::Read,
    path::Path,
    process::{Command, Stdio},
};

use super::cases::answer;

fn here(args: &[&str]) -> String {
    answer(Path::new(env!("CARGO_MANIFEST_DIR")), args)
}

fn exit(answer: &str) -> &str {
    answer.trim_end().rsplit(' ').next().unwrap_or_default()
}

#[test]
fn wrong_usage_is_64_and_names_what_is_wrong() {
    for (args, words) in [
        (&[][..], "Usage: sbx"),
        (&["chek"], "'chek'"),
        (&["check", "--colour"], "'--colour'"),
        (&["check", "a.toml", "b.toml"], "'b.toml'"),
        (&["check", "--color", "sometimes"], "'sometimes'"),
        (&["graph", "--format", "png"], "'png'"),
        (&["plan", "--format", "yaml"], "'yaml'"),
        (&["plan", "--auto-approve"], "'--auto-approve'"),
        (&["apply", "--auto-approve"], "'--auto-approve'"),
        (&["apply", "--approve"], "--approve <STEP@CONTEXT>"),
        (&["completions"], "<SHELL>"),
        (&["completions", "dos"], "'dos'"),
    ] {
        let answer = here(args);
        assert_eq!(exit(&answer), "64", "{answer}");
        assert!(answer.contains(words) && !answer.contains("--- stdout"), "{answer}");
    }
}

#[test]
fn help_and_version_are_results() {
    for verb in ["check", "graph", "plan", "apply", "schema", "completions"] {
        let answer = here(&[verb, "--help"]);
        assert!(exit(&answer) == "0" && answer.contains("--- stdout") && !answer.contains("--- stderr"), "{answer}");
        assert!(
            answer.contains("--color") && answer.contains("--kubeconfig") && answer.contains("--context"),
            "{answer}"
        );
    }
    let help = here(&["--help"]);
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    assert!(help.contains("  check ") && help.contains("  apply "), "{help}");
    let version = here(&["--version"]);
    assert_eq!(version, format!("$ sbx --version\n--- stdout\nsbx {}\n--- exit 0\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_cluster_may_be_named_before_or_after_the_verb() {
    for args in [&["--context", "a", "plan", "--kubeconfig", "b"], &["plan", "--kubeconfig", "b", "--context", "a"]] {
        let answer = here(args);
        assert!(exit(&answer) == "4" && answer.contains("context a answers"), "{answer}");
    }
}

#[test]
fn naming_a_cluster_to_a_command_that_asks_none_is_wrong_usage() {
    for verb in ["check", "graph", "rehearse", "rbac", "schema"] {
        for flag in ["--context", "--kubeconfig"] {
            let answer = here(&[verb, flag, "a"]);
            assert_eq!(exit(&answer), "64", "{answer}");
            assert!(answer.contains(&format!("{flag} means nothing here")), "{answer}");
        }
    }
}

#[test]
fn a_path_that_leads_nowhere_says_what_is_near_and_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("runbooks/v1.0.0.toml");
    fs::copy(&shipped, folder.path().join("upgrade.toml")).expect("a copy");
    for (args, words) in [
        (
            &["check", "upgrad.toml"][..],
            &["cannot read the runbook `upgrad.toml`", "No such file", "did you mean `upgrade.toml`?"][..],
        ),
        (&["check", "nowhere/upgrade.toml"], &["there is no folder nowhere", "sbx init"]),
        (&["check", "."], &["Is a directory", "it is a folder", "upgrade.toml"]),
        (
            &["rehearse", "upgrade.toml", "--snapshot", "upgrade.tom"],
            &["No such file", "did you mean `upgrade.toml`?", "sbx snapshot"],
        ),
        (
            &["plan", "upgrade.toml", "--kubeconfig", "nope"],
            &["read the kubeconfig", "No such file", "--kubeconfig FILE or KUBECONFIG"],
        ),
    ] {
        let answer = answer(folder.path(), args);
        assert_eq!(exit(&answer), "1", "{answer}");
        let flat = answer.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.iter().all(|word| flat.contains(word)), "{answer}");
    }
}

#[test]
fn a_server_that_is_not_reached_is_named_with_the_likely_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/runbooks/v1.0.0.toml");
    // Nobody listens on port 1, and `.invalid` is in no DNS.
    for (cluster, user, words) in [
        (
            "server: https://127.0.0.1:1",
            "token: t",
            &["API server https://127.0.0.1:1", "refused", "is the API server up"][..],
        ),
        ("server: https://name:word@127.0.0.1:1", "token: t", &["API server https://127.0.0.1:1"]),
        ("server: https://a.invalid", "token: t", &["API server https://a.invalid", "is the VPN up"]),
        ("server: https://a.invalid\n    proxy-url: http://127.0.0.1:1", "token: t", &["proxy-url", "HTTPS_PROXY"]),
        (
            "server: https://127.0.0.1:1",
            "exec: {apiVersion: client.authentication.k8s.io/v1, command: kubectl-nowhere, interactiveMode: Never}",
            &["exec plugin is `kubectl-nowhere`", "install the plugin"],
        ),
    ] {
        let config = format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster:\n    {cluster}\nusers:\n- name: u\n  user:\n    \
             {user}\ncontexts:\n- name: admin@pitower\n  context: {{cluster: c, user: u}}\n"
        );
        fs::write(folder.path().join("config"), config).expect("a file");
        let answer = answer(folder.path(), &["plan", shipped, "--kubeconfig", "config"]);
        assert_eq!(exit(&answer), "1", "{answer}");
        let flat = answer.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.iter().all(|word| flat.contains(word)) && !flat.contains("word@"), "{answer}");
    }
}

#[test]
fn the_only_runbook_need_not_be_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let none = answer(folder.path(), &["check"]);
    assert!(exit(&none) == "64" && none.contains("name a runbook"), "{none}");

    let runbooks = folder.path().join("runbooks");
    fs::create_dir(&runbooks).expect("a folder");
    let shipped = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("runbooks/v1.0.0.toml")).expect("shipped");
    fs::write(runbooks.join("one.toml"), &shipped).expect("a file");
    fs::write(runbooks.join("notes.md"), "no runbook").expect("a file");
    let one = answer(folder.path(), &["check"]);
    assert_eq!(one, "$ sbx check\n--- stdout\nrunbooks/one.toml: 12 steps, no problems\n--- exit 0\n");

    fs::write(runbooks.join("two.toml"), &shipped).expect("a file");
    let two = answer(folder.path(), &["check"]);
    assert!(exit(&two) == "64" && two.contains("runbooks/one.toml") && two.contains("runbooks/two.toml"), "{two}");
}

#[test]
fn the_schema_is_the_committed_one() {
    let committed = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/runbook.json")).expect("it");
    assert_eq!(here(&["schema"]), format!("$ sbx schema\n--- stdout\n{committed}--- exit 0\n"));
}

#[test]
fn completions_know_the_verbs() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let answer = here(&["completions", shell]);
        assert!(exit(&answer) == "0" && answer.contains("detailed-exitcode") && answer.contains("check"), "{shell}");
    }
}

#[test]
fn colour_is_for_terminals_unless_asked_for() {
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/check/unknown-keys");
    let plain = answer(&case, &["check", "runbook.toml"]);
    assert!(!plain.contains('\u{1b}'), "{plain}");
    let coloured = answer(&case, &["check", "runbook.toml", "--color", "always"]);
    assert!(coloured.contains("\u{1b}["), "{coloured}");
    assert_eq!(
        console::strip_ansi_codes(&coloured).replace(" --color always", "").replace(' ', ""),
        plain.replace(' ', ""),
        "colour must add nothing else"
    );
    // Wrong usage obeys too, although it is told before the arguments are known.
    assert!(here(&["chek", "--color", "always"]).contains("\u{1b}["));
    assert!(!here(&["chek"]).contains('\u{1b}'));
}

#[test]
fn a_reader_that_goes_away_ends_the_output_quietly() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sbx"))
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sbx starts");
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().expect("its stderr").read_to_string(&mut said).expect("text");
    let status = child.wait().expect("it ends");
    assert_eq!((status.code(), said.as_str()), (Some(0), ""));
}

#[test]
fn a_result_that_nobody_has_is_no_success() {
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let output = Command::new(env!("CARGO_BIN_EXE_sbx")).arg("schema").stdout(full).output().expect("sbx starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("write the result"), "{said}");
}
