//! Files that are no runbooks at all: answered in words, never by a panic, and in bounded space.

use std::{fs, path::Path};

use super::cases::answer;

const HEAD: &str = "title = \"t\"\n[cluster]\ncontext = \"c\"\n[upgrade]\nfrom = \"v1alpha1\"\nto = \"v1beta1\"\ncrds = [\"widgets.demo.test\"]\n";

fn check(bytes: impl AsRef<[u8]>) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("runbook.toml"), bytes).expect("a file");
    refused(answer(folder.path(), &["check", "runbook.toml"]))
}

/// Exit 1, with words, on few and short lines, without a panic.
fn refused(answer: String) -> String {
    assert!(answer.ends_with("--- exit 1\n"), "{}", &answer[answer.len().saturating_sub(500)..]);
    assert!(answer.contains("error: ") && !answer.contains("panicked"), "{answer}");
    let longest = answer.lines().map(|line| line.chars().count()).max().unwrap_or_default();
    assert!(longest < 1000 && answer.len() < 100_000, "{longest} characters on a line, {} bytes", answer.len());
    answer
}

#[test]
fn a_line_of_a_megabyte_is_cut() {
    let long = "a".repeat(1 << 20);
    for text in [
        format!("{HEAD}[[step]]\nid = \"{long}\"\n[step.writers]\nquiet-for = \"30m\"\n"),
        format!("{HEAD}[[step]]\nid = \"a\"\n[step.writers]\n{long} = \"30m\"\n"),
        format!("{HEAD}[[step]]\nid = \"a\"\nneeds = [\"{long}\"]\n[step.writers]\nquiet-for = \"{long}\"\n"),
        format!("{HEAD}[[step]]\nid = \"a\"{}oops\n", " ".repeat(1 << 20)),
        long.clone(),
        format!("\"{long}"),
    ] {
        check(text);
    }
}

#[test]
fn nesting_without_end_is_refused() {
    check(format!("{HEAD}x = {}{}\n", "[".repeat(100_000), "]".repeat(100_000)));
    check(format!("{HEAD}x = {}\n", "{a=".repeat(100_000)));
    check(format!("{HEAD}x{} = 1\n", ".a".repeat(100_000)));
    check(format!("{HEAD}[x{}]\n", ".a".repeat(100_000)));
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let mut state = 7_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    })
    .take(50_000)
    .collect();
    check(&noise);
    check(noise.iter().map(|byte| char::from(*byte)).collect::<String>());
    check(noise.iter().map(|byte| char::from(byte & 0x7f)).collect::<String>());
    check("\0");
    check("\r\r\r");
    check("\u{feff}\u{feff}");
    check([0xff]);
}

#[test]
fn every_beginning_of_a_runbook_gets_an_answer() {
    let whole = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("runbooks/v1.0.0.toml")).expect("text");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("runbook.toml");
    for end in (0..whole.len()).step_by(29).filter(|end| whole.is_char_boundary(*end)) {
        fs::write(&path, &whole[..end]).expect("a file");
        if let Err(error) = sbx::graph::load(&path) {
            let sbx::runbook::RunbookError::Invalid { text, problems, .. } = &error else { panic!("{error}") };
            assert!(!problems.is_empty(), "cut at {end}: refused without a reason");
            sbx::render::problems_text("runbook.toml", text, problems, &sbx::render::View::plain(80));
        }
    }
}

#[test]
fn many_steps_are_no_trouble() {
    let steps: String = (0..2000)
        .map(|number| {
            let needs = if number == 0 { String::new() } else { format!("needs = [\"s{}\"]\n", number - 1) };
            format!("[[step]]\nid = \"s{number}\"\n{needs}[step.confirm]\nquestion = \"Sure?\"\n")
        })
        .collect();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("runbook.toml");
    fs::write(&path, format!("{HEAD}{steps}")).expect("a file");
    let (runbook, graph) = sbx::graph::load(&path).expect("a long runbook is a runbook");
    assert_eq!(graph.order(), (0..2000).collect::<Vec<_>>());
    assert!(sbx::render::graph::tree(&runbook, &graph).contains("2000 s1999"));
    // Closed to one circle of two thousand.
    fs::write(&path, format!("{HEAD}{}", steps.replacen("id = \"s0\"\n", "id = \"s0\"\nneeds = [\"s1999\"]\n", 1)))
        .expect("a file");
    let answer = answer(folder.path(), &["check", "runbook.toml"]);
    assert!(answer.contains("steps need each other: s0 -> s1999 -> s1998"), "{}", &answer[..300]);
}

#[test]
fn what_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("folder.toml")).expect("a folder");
    for (name, words) in [("no-such-file.toml", "No such file"), ("folder.toml", "directory"), ("/dev/zero", "16 MiB")]
    {
        let answer = refused(answer(folder.path(), &["check", name]));
        assert!(answer.contains(&format!("cannot read the runbook `{name}`")) && answer.contains(words), "{answer}");
    }
}
