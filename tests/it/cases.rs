//! Runbooks in folders, and what `sbx` says of them.
//!
//! - `tests/cases/check/<case>/`: `runbook.toml`, and `expected.txt`, the whole answer of `sbx check`.
//! - `tests/cases/graph/<case>/`: `runbook.toml`, and one file for each form of `sbx graph`.
//!
//! `SBX_BLESS=1 cargo test --test it cases` writes the answers anew; read the diff.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

fn folder(verb: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(verb)
}

fn cases(verb: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder(verb)).expect("the folder of the cases");
    let mut cases: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    cases.sort();
    cases
}

/// Runs `sbx` in a folder; its whole answer as one text.
pub(crate) fn answer(folder: &Path, args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_sbx"))
        .args(args)
        .current_dir(folder)
        .env_remove("NO_COLOR")
        .output()
        .expect("sbx starts");
    let said = |name: &str, bytes: &[u8]| match str::from_utf8(bytes).expect("sbx writes UTF-8") {
        "" => String::new(),
        text => format!("--- {name}\n{text}"),
    };
    let code = output.status.code().map_or_else(|| "killed".to_owned(), |code| code.to_string());
    format!(
        "$ sbx {}\n{}{}--- exit {code}\n",
        args.join(" "),
        said("stdout", &output.stdout),
        said("stderr", &output.stderr)
    )
}

/// Compares with the kept answer, or keeps this one.
fn kept(path: &Path, answer: &str, different: &mut Vec<String>) {
    if std::env::var_os("SBX_BLESS").is_some() {
        fs::write(path, answer).expect("a file to keep");
    }
    let kept = fs::read_to_string(path).unwrap_or_default();
    if kept != answer {
        let diff = similar::TextDiff::from_lines(&kept, answer).unified_diff().to_string();
        different.push(format!("{}\n{diff}", path.display()));
    }
}

fn settle(different: &[String]) {
    assert!(different.is_empty(), "not as kept (SBX_BLESS=1 writes them anew):\n{}", different.join("\n"));
}

#[test]
fn check_answers_as_kept() {
    let mut different = Vec::new();
    for case in cases("check") {
        kept(&case.join("expected.txt"), &answer(&case, &["check", "runbook.toml"]), &mut different);
    }
    settle(&different);
}

#[test]
fn graph_answers_as_kept() {
    let mut different = Vec::new();
    for case in cases("graph") {
        for form in ["tree", "dot", "mermaid"] {
            let path = case.join(format!("{form}.txt"));
            kept(&path, &answer(&case, &["graph", "runbook.toml", "--format", form]), &mut different);
        }
    }
    settle(&different);
}

/// What blessing must not let through: a good runbook passes, a bad one fails with places.
#[test]
fn good_is_good_and_bad_is_bad() {
    let (mut good, mut bad) = (0, 0);
    for case in cases("check") {
        let name = case.file_name().expect("a case has a name").to_string_lossy().into_owned();
        let text = answer(&case, &["check", "runbook.toml"]);
        if name.starts_with("good-") {
            good += 1;
            assert!(text.ends_with("no problems\n--- exit 0\n"), "{name}: {text}");
        } else {
            bad += 1;
            let problems = text.matches("error: ").count();
            assert!(text.ends_with("--- exit 1\n") && problems > 0, "{name}: {text}");
            assert!(!text.contains("--- stdout"), "{name}: a problem is no result: {text}");
            assert_eq!(text.matches("--> runbook.toml:").count(), problems, "{name}: a place for each: {text}");
            assert!(text.contains('^'), "{name}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "{name}: an escape sequence got through");
    }
    assert!(good >= 5 && bad >= 30, "{good} good and {bad} bad runbooks");
}

#[test]
fn no_file_of_a_case_is_left_behind() {
    for (verb, answers) in [("check", &["expected.txt"][..]), ("graph", &["tree.txt", "dot.txt", "mermaid.txt"])] {
        for case in cases(verb) {
            let mut entries: Vec<String> = fs::read_dir(&case)
                .expect("a case is a folder")
                .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
                .collect();
            let runbook = fs::read(case.join("runbook.toml")).expect("a case has a runbook");
            let runbook = String::from_utf8_lossy(&runbook);
            // Beside the runbook and the answers: only what the runbook names.
            entries.retain(|name| name != "runbook.toml" && !answers.contains(&name.as_str()));
            entries.retain(|name| !runbook.contains(&format!("\"{name}\"")));
            assert_eq!(entries, Vec::<String>::new(), "{}", case.display());
        }
    }
}
