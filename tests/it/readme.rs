//! The README tells the truth: its tour is what its first command prints.

use std::{env, fs, path::Path, process::Command};

const BEGIN: &str = "```console\n$ cargo run --release -- rehearse runbooks/v1.0.0.toml\n";
const END: &str = "```\n";

/// No kubeconfig, no colour, no terminal: what a newcomer's pipe would hold.
fn rehearsed() -> (Option<i32>, String, String) {
    let ran = Command::new(env!("CARGO_BIN_EXE_sbx"))
        .args(["rehearse", "runbooks/v1.0.0.toml"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("KUBECONFIG")
        .env("HOME", "/nonexistent")
        .output()
        .expect("the program runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (ran.status.code(), text(ran.stdout), text(ran.stderr))
}

#[test]
fn the_tour_is_what_the_first_command_prints() {
    let (code, out, err) = rehearsed();
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(&path).expect("README.md");
    let (before, rest) = readme.split_once(BEGIN).expect("README.md has the tour's command");
    let (tour, after) = rest.split_once(END).expect("the tour ends");
    if env::var_os("SBX_BLESS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{out}{END}{after}")).expect("written");
        return;
    }
    assert!(tour == out, "the tour in README.md is not what is printed; SBX_BLESS=1 rewrites it:\n{out}");
}
