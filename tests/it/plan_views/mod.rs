//! The three views of a plan, against golden files and against each other.
//!
//! `SBX_BLESS=1 cargo test --test it plan_views` writes `tests/cases/views/` anew; read the diff.

mod sample;
mod saved;
mod scenes;

use std::{fs, path::PathBuf};

use sbx::{
    plan::{Finding, Operation, Plan, State},
    render::{
        MARKDOWN_LIMIT, Styles, View,
        escape::{is_hidden, visible},
        json_text, plan_json, plan_markdown, plan_text,
    },
};

use sample::{change, object, plan, step};

fn views(plan: &Plan) -> [(&'static str, String); 4] {
    [
        ("text-80.txt", plan_text(plan, &View::plain(80))),
        ("text-120.txt", plan_text(plan, &View::plain(120))),
        ("comment.md", plan_markdown(plan)),
        ("plan.json", json_text(&plan_json(plan))),
    ]
}

#[test]
fn every_view_is_as_kept() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases/views");
    let bless = std::env::var_os("SBX_BLESS").is_some();
    let mut different = Vec::new();
    for (case, plan) in scenes::all() {
        for (name, text) in views(&plan) {
            let path = root.join(case).join(name);
            if bless {
                fs::create_dir_all(root.join(case)).expect("a folder for the case");
                fs::write(&path, &text).expect("a golden file");
            }
            let kept = fs::read_to_string(&path).unwrap_or_default();
            if kept != text {
                different.push(format!("{}\n{text}", path.display()));
            }
        }
    }
    assert!(different.is_empty(), "not as kept (SBX_BLESS=1 writes them anew):\n{}", different.join("\n"));
}

#[test]
fn no_golden_folder_is_left_behind() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases/views");
    let mut kept: Vec<String> = fs::read_dir(root)
        .expect("the folder of the cases")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    let mut made: Vec<String> = scenes::all().into_iter().map(|(name, _)| name.to_owned()).collect();
    kept.sort();
    made.sort();
    assert_eq!(kept, made);
}

#[test]
fn the_same_plan_gives_the_same_bytes() {
    for ((case, one), (_, other)) in scenes::all().into_iter().zip(scenes::all()) {
        assert_eq!(views(&one), views(&other), "{case}");
    }
}

#[test]
fn no_line_is_wider_than_the_page() {
    // A word that is longer than its column runs over: a name cut in two cannot be copied.
    for (case, plan) in scenes::all().into_iter().filter(|(case, _)| !["hostile", "long-values"].contains(case)) {
        for columns in [80, 100, 120] {
            for line in plan_text(&plan, &View::plain(columns)).lines() {
                assert!(line.chars().count() <= columns, "{case} at {columns}: {line}");
            }
        }
    }
}

#[test]
fn colour_is_extra() {
    for (case, plan) in scenes::all() {
        let painted = plan_text(&plan, &View { width: 100, styles: Styles::coloured() });
        assert!(painted.contains("\u{1b}["), "{case}");
        assert_eq!(console::strip_ansi_codes(&painted), plan_text(&plan, &View::plain(100)), "{case}");
    }
}

#[test]
fn nothing_from_the_cluster_acts_on_the_reader() {
    for (name, text) in views(&scenes::hostile()) {
        let raw: Vec<char> = text.chars().filter(|&c| c != '\n' && is_hidden(c)).collect();
        assert!(raw.is_empty(), "{name} holds {raw:?}");
        assert!(text.contains("[2J"), "{name} shows what was there");
    }
}

#[test]
fn nothing_from_the_cluster_acts_in_markdown() {
    let comment = plan_markdown(&scenes::hostile());
    let mut prose = String::new();
    let mut fence: Option<&str> = None;
    let (marker, comment) = comment.split_once('\n').expect("the marker's line");
    assert!(marker.find("-->") == Some(marker.len() - 3) && !marker[4..].contains('<'), "{marker}");
    for line in comment.lines() {
        let ticks = &line[..line.len() - line.trim_start_matches('`').len()];
        match fence {
            Some(open) if line == open => fence = None,
            Some(_) => {}
            None if ticks.len() >= 3 => fence = Some(ticks),
            // HTML of our own: nothing in it is Markdown.
            None if line.starts_with("<details>") => prose += &without_code_elements(line),
            None => prose += &without_code_spans(line),
        }
    }
    assert_eq!(fence, None, "a fence is open at the end");
    for markup in ["@all", "#1", "<b>", "https://", "*i*", "](", "--> *"] {
        assert!(!prose.contains(markup), "{markup} stands outside of code in:\n{prose}");
    }
}

fn without_code_elements(line: &str) -> String {
    let mut parts = line.split("<code>");
    let first = parts.next().unwrap_or_default();
    parts.fold(first.to_owned(), |prose, part| prose + part.split_once("</code>").expect("its end").1)
}

/// The line without its code spans, each closed by a run as long as the one that opened it.
fn without_code_spans(line: &str) -> String {
    let mut rest = line;
    let mut prose = String::new();
    while let Some(start) = rest.find('`') {
        prose.push_str(&rest[..start]);
        let ticks = rest[start..].len() - rest[start..].trim_start_matches('`').len();
        let inside = &rest[start + ticks..];
        let mut close = 0;
        loop {
            let Some(next) = inside[close..].find('`').map(|at| close + at) else {
                panic!("a code span is open at the end of: {line}");
            };
            let run = inside[next..].len() - inside[next..].trim_start_matches('`').len();
            close = next + run;
            if run == ticks {
                break;
            }
        }
        rest = &inside[close..];
    }
    prose + rest
}

#[test]
fn the_views_agree_on_their_counts() {
    for (case, plan) in scenes::all() {
        let json = plan_json(&plan);
        let states = &json["summary"]["states"];
        let count = |state: &str| states[state]["count"].as_u64().expect("a count");
        let names = |list: &serde_json::Value| list.as_array().expect("a list").len() as u64;
        let mut steps = 0;
        for state in ["met", "done", "to_do", "after", "waiting", "not_needed", "not_selected"] {
            assert_eq!(count(state), names(&states[state]["steps"]), "{case} {state}");
            steps += count(state);
        }
        assert_eq!(steps, plan.steps.len() as u64, "{case}");
        if case == "settled" {
            continue;
        }
        let findings = |grade: &str| json["summary"]["findings"][grade].as_u64().expect("a count");
        let text = plan_text(&plan, &View::plain(500));
        let summary = text.lines().find(|line| line.starts_with("Plan ")).expect("a summary");
        let head = plan_markdown(&plan);
        for (number, words) in [
            (count("met"), "met"),
            (count("done"), "done"),
            (count("to_do") + count("after"), "to do"),
            (count("waiting"), "WAITING"),
            (count("not_selected"), "not selected"),
            (names(&json["summary"]["no_return"]), "POINT OF NO RETURN"),
            (findings("blockers"), "BLOCKER"),
            (findings("warnings"), "warning"),
            (findings("not_checked"), "not checked"),
        ] {
            for said in [summary, &head] {
                assert_eq!(
                    said.contains(&format!(" {number} {words}")) || said.contains(&format!("**{number} {words}")),
                    number > 0,
                    "{case}: {number} {words} in {said}"
                );
            }
        }
        // Every blocked step is named once more at the end.
        let last: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("Plan ")).collect();
        for id in json["summary"]["blocked"].as_array().expect("a list") {
            let name = visible(id.as_str().expect("an id"));
            assert!(last.iter().any(|line| line.starts_with("! ") && line.contains(&*name)), "{case}: {name}");
        }
    }
}

#[test]
fn a_comment_stays_below_its_limit_and_keeps_what_must_stay() {
    let big = |objects: usize| {
        let pods = (0..objects).map(|index| {
            let value = format!("value {index} {}", "x".repeat(200));
            change(
                Operation::Update,
                object("", "Pod", "team-a", &format!("p{index}")),
                &[("spec.x", None, Some(&*value))],
            )
        });
        plan(vec![
            step("small", "strip", State::ToDo, "one annotation").changes([change(
                Operation::Update,
                object("", "Pod", "team-a", "small"),
                &[("metadata.annotations[a]", Some("kept detail"), None)],
            )]),
            step("large", "strip", State::ToDo, "many annotations").changes(pods),
            step("merge", "merge", State::After(vec![2]), "Argo CD")
                .no_way_back("merge@admin@pitower")
                .found(Finding::blocker("names itself").about(object("", "Secret", "ai", "the-one"))),
        ])
    };
    let whole = plan_markdown(&big(100));
    assert!(whole.contains("value 99 ") && !whole.contains("left out"), "what fits is whole");

    let cut = plan_markdown(&big(300));
    assert!(json_text(&plan_json(&big(300))).len() > 70_000);
    assert!(cut.len() < MARKDOWN_LIMIT, "{} bytes", cut.len());
    assert!(cut.contains("Changes: 602 lines left out."), "{cut}");
    assert!(!cut.contains("value 299 ") && cut.contains("kept detail"), "the largest goes, the small stays");
    for kept in
        ["> [!CAUTION]", "`merge@admin@pitower`", "1 blocker: apply refuses", "Secret `ai/the-one`", "| 2 | `large` |"]
    {
        assert!(cut.contains(kept), "{kept} is missing in:\n{cut}");
    }
    assert_eq!(cut.lines().filter(|line| line.starts_with("```")).count() % 2, 0, "fences are balanced");
    assert_eq!(cut.matches("<details>").count(), cut.matches("</details>").count());
}

#[test]
fn a_comment_stays_below_its_limit_whatever_the_plan_holds() {
    let long = "@x <y> `z` ".repeat(100);
    let mut steps = Vec::new();
    for index in 0..300 {
        let name = format!("step-{index}-{long}");
        let sample = step("x", "strip", State::After((1..=300).collect()), &long)
            .no_way_back(&long)
            .found(Finding::blocker(format!("{index} {long}")).about(object("g", &long, "", &name)).hint(&*long));
        steps.push(sample);
    }
    let mut plan = plan(steps);
    plan.runbook.title = long.clone();
    plan.cluster.context = long;
    let comment = plan_markdown(&plan);
    assert!(comment.len() < MARKDOWN_LIMIT, "{} bytes", comment.len());
    assert!(comment.contains("260 more steps not shown.") && comment.contains("- and 260 more"), "{comment}");
}
