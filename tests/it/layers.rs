//! Imports point down, and every package has a home.
//!
//! Read from the text of `src/`: comments and unit tests aside, every `crate::` path and every path
//! into a package.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Modules from the bottom up. A module imports from rows above its own in this list, never from its
/// own row or below.
const LAYERS: [&[&str]; 11] = [
    &["object", "suggest", "exit_code", "clock", "image", "cli", "embedded", "control_plane"],
    &["crd", "fields", "files", "backup"],
    &["runbook"],
    &["graph", "cluster"],
    &["plan"],
    &["diff"],
    &["steps"],
    &["apply", "draft", "snapshot"],
    &["rehearse"],
    &["render", "error"],
    &["terminal", "commands", "main", "lib"],
];

/// What a module must not see although it lies below: the plan is plain data, and so is what is shown.
const NEVER: [(&str, &str); 2] = [("plan", "cluster"), ("render", "cluster")];

/// Packages and the only places that name them.
const HOMES: [(&str, &[&str]); 18] = [
    ("kube", &["cluster/", "embedded/", "control_plane/"]),
    ("k8s_openapi", &["cluster/", "embedded/", "control_plane/"]),
    ("tower", &["cluster/", "embedded/"]),
    ("rcgen", &["control_plane/", "steps/certificate.rs"]),
    ("x509_parser", &["steps/certificate.rs"]),
    ("data_encoding", &["steps/certificate.rs"]),
    ("tokio_rustls", &["control_plane/"]),
    ("hyper", &["control_plane/"]),
    ("hyper_util", &["control_plane/"]),
    ("clap", &["cli.rs", "commands/", "main.rs"]),
    ("clap_complete", &["cli.rs", "commands/completions.rs"]),
    ("petgraph", &["graph.rs"]),
    ("toml", &["runbook/"]),
    ("annotate_snippets", &["render/problems.rs"]),
    ("console", &["terminal.rs", "render/styles.rs"]),
    ("similar", &["suggest.rs", "render/diff.rs"]),
    ("serde_saphyr", &["files.rs", "backup.rs", "embedded/"]),
    ("schemars", &["runbook/", "render/json"]),
];

struct Source {
    /// From `src/`, with slashes.
    path: String,
    /// Its first folder or file name: `runbook`.
    module: String,
    /// Without comments and unit tests.
    text: String,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut open = vec![root.clone()];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(source(&root, &path));
        }
    }
    assert!(found.len() > 30, "the sources are somewhere else");
    found
}

fn source(root: &Path, path: &PathBuf) -> Source {
    let text = fs::read_to_string(path).expect("a source is text");
    let path = path.strip_prefix(root).expect("below src").to_string_lossy().replace('\\', "/");
    let module = path.split('/').next().unwrap_or_default().trim_end_matches(".rs").to_owned();
    // Unit tests stand last in their file.
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.find("//").map_or(line, |at| &line[..at]));
    Source { path, module, text: lines.collect::<Vec<_>>().join("\n") }
}

/// Names right after `crate::`, groups taken apart.
fn imports(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            names.extend(heads(group));
        } else {
            names.insert(head(rest));
        }
    }
    names
}

fn head(text: &str) -> String {
    text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// First names of the entries of a group, up to its end.
fn heads(group: &str) -> Vec<String> {
    let mut names = vec![head(group)];
    let mut depth = 0;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(head(&group[at + 1..])),
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Whether a package is named: `package::` at the start of a path.
fn names_package(text: &str, package: &str) -> bool {
    text.match_indices(package).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let starts = before.is_none_or(|c| !c.is_alphanumeric() && !"_:.\"`".contains(c));
        starts && text[at + package.len()..].starts_with("::")
    })
}

fn row(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

#[test]
fn imports_point_down() {
    let mut wrong = Vec::new();
    for source in sources() {
        let Some(own) = row(&source.module) else {
            wrong.push(format!("{}: `{}` has no layer", source.path, source.module));
            continue;
        };
        for import in imports(&source.text) {
            // The root re-exports nothing, so what is no module is a macro or an item of its own.
            let Some(other) = row(&import) else {
                wrong.push(format!("{}: `crate::{import}` has no layer", source.path));
                continue;
            };
            if import != source.module && (other >= own || NEVER.contains(&(&source.module, &import))) {
                // The last row is the top: its modules work together.
                if own + 1 == LAYERS.len() && other == own {
                    continue;
                }
                wrong.push(format!("{}: must not see `{import}`", source.path));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn packages_stay_at_home() {
    let mut wrong = Vec::new();
    for source in sources() {
        for (package, homes) in HOMES {
            let at_home = homes.iter().any(|home| source.path.starts_with(home));
            if !at_home && names_package(&source.text, package) {
                wrong.push(format!("{} names `{package}`", source.path));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn only_the_terminal_prints() {
    let prints = ["print!", "println!", "eprint!", "eprintln!", "io::stdout", "io::stderr", "Term::"];
    let wrong: BTreeMap<String, Vec<&str>> = sources()
        .into_iter()
        .filter(|source| source.path != "terminal.rs")
        .map(|source| (source.path, prints.into_iter().filter(|print| source.text.contains(print)).collect::<Vec<_>>()))
        .filter(|(_, found)| !found.is_empty())
        .collect();
    assert_eq!(wrong, BTreeMap::new());
}

/// The reader of imports must see what it is there to see.
#[test]
fn imports_are_read_in_every_form() {
    let text = "use crate::{\n    plan::{self, Plan},\n    runbook::{a::{B, C}, D},\n    suggest,\n};\nlet x = crate::graph::load();";
    assert_eq!(imports(text).into_iter().collect::<Vec<_>>(), ["graph", "plan", "runbook", "suggest"]);
    assert!(names_package("use kube::Client;", "kube") && names_package("(kube::api::X)", "kube"));
    assert!(!names_package("use crate::kube::X;", "kube") && !names_package("akube::X kube_x::Y", "kube"));
}
