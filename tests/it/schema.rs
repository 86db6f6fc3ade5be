//! The JSON Schema of a runbook: generated, committed, and true.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn validator() -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(&sbx::runbook::schema()).expect("a schema is JSON");
    jsonschema::validator_for(&schema).expect("it is a schema")
}

fn value(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("a runbook");
    toml::from_str(text.trim_start_matches('\u{feff}')).expect("it is TOML")
}

fn shipped() -> Vec<PathBuf> {
    let mut open = vec![root().join("runbooks")];
    let mut found = Vec::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry").path()));
        } else if path.extension().is_some_and(|ending| ending == "toml") {
            found.push(path);
        }
    }
    assert!(!found.is_empty(), "no runbook is shipped");
    found
}

#[test]
fn the_committed_schema_is_the_generated_one() {
    let path = root().join("schemas/runbook.json");
    let generated = sbx::runbook::schema();
    if std::env::var_os("SBX_BLESS").is_some() {
        fs::write(&path, &generated).expect("the schema is written");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(kept, generated, "SBX_BLESS=1 writes schemas/runbook.json anew");
}

#[test]
fn shipped_runbooks_fit_load_and_say_when_to_use_them() {
    let validator = validator();
    for path in shipped() {
        let errors: Vec<String> = validator.iter_errors(&value(&path)).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{}", path.display());
        if let Err(error) = sbx::graph::load(&path) {
            panic!("{error}: {:#?}", error.problems());
        }
        let text = fs::read_to_string(&path).expect("a runbook");
        let mut lines = text.lines();
        let schema = lines.next().and_then(|line| line.strip_prefix("#:schema ")).expect("editors find the schema");
        assert!(path.parent().expect("a folder").join(schema).is_file(), "{}: {schema}", path.display());
        assert!(lines.take_while(|line| line.starts_with('#')).count() >= 3, "{}: no header", path.display());
    }
}

/// An editor must not colour red what `sbx check` accepts, nor leave plain mistakes alone.
#[test]
fn the_schema_and_the_reader_agree() {
    let validator = validator();
    let cases = root().join("tests/cases/check");
    let mut good = 0;
    for case in fs::read_dir(&cases).expect("the cases").map(|entry| entry.expect("an entry").path()) {
        if case.file_name().is_some_and(|name| name.to_string_lossy().starts_with("good-")) {
            good += 1;
            let errors: Vec<String> =
                validator.iter_errors(&value(&case.join("runbook.toml"))).map(|error| error.to_string()).collect();
            assert_eq!(errors, Vec::<String>::new(), "{}", case.display());
        }
    }
    assert!(good >= 5);
    let structural = [
        "unknown-keys",
        "unknown-kind",
        "kind-as-a-key",
        "no-kind",
        "several-kinds",
        "step-is-no-list",
        "no-steps",
        "missing-keys",
        "wrong-types",
        "id-missing",
        "id-invalid",
        "owners-of-no-kind",
        "migrate-values",
    ];
    for case in structural {
        let wrong = value(&cases.join(case).join("runbook.toml"));
        assert!(!validator.is_valid(&wrong), "{case} passes the schema");
    }
}
