//! A plan that was saved as JSON comes back whole, and a text that is none says why.

use std::{fs, path::PathBuf};

use sbx::render::{SavedPlanError, json_text, plan_json, plan_schema, read_plan};

use super::{scenes, views};

#[test]
fn a_saved_plan_shows_as_it_did() {
    for (case, plan) in scenes::all() {
        let saved = json_text(&plan_json(&plan));
        let back = read_plan(&saved).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(views(&back), views(&plan), "{case}");
    }
}

#[test]
fn a_newer_minor_version_is_read_and_what_is_new_passed_over() {
    let mut saved = plan_json(&scenes::untouched());
    saved["schema_version"] = "1.7".into();
    saved["steps"][0]["new_in_1_7"] = true.into();
    assert!(read_plan(&json_text(&saved)).is_ok());
}

#[test]
fn what_is_no_plan_says_why() {
    let saved = |key: &str, value: serde_json::Value| {
        let mut saved = plan_json(&scenes::untouched());
        *saved.pointer_mut(key).expect("a key of the plan") = value;
        read_plan(&json_text(&saved)).expect_err("it is refused")
    };
    assert!(matches!(read_plan("{"), Err(SavedPlanError::Malformed(_))));
    assert!(matches!(read_plan("[]"), Err(SavedPlanError::NotAPlan)));
    assert!(matches!(saved("/schema", "sbx.backup".into()), SavedPlanError::NotAPlan));
    assert!(matches!(saved("/schema_version", "2.0".into()), SavedPlanError::Version(version) if version == "2.0"));
    assert!(matches!(saved("/steps/0/number", "one".into()), SavedPlanError::Malformed(_)));
    assert!(matches!(saved("/facts/0/value", "another cluster".into()), SavedPlanError::Altered { .. }));
    assert!(
        matches!(saved("/steps/3/kind", "teleport".into()), SavedPlanError::UnknownKind { kind, .. } if kind == "teleport")
    );
    assert!(matches!(saved("/created_at", "yesterday".into()), SavedPlanError::Time(_)));
}

#[test]
fn the_schema_is_as_kept_and_every_plan_fits_it() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("schemas/plan.json");
    let schema = plan_schema();
    let text = json_text(&schema);
    if std::env::var_os("SBX_BLESS").is_some() {
        fs::create_dir_all(path.parent().expect("a folder")).expect("the folder of the schemas");
        fs::write(&path, &text).expect("the schema");
    }
    assert_eq!(fs::read_to_string(&path).unwrap_or_default(), text, "SBX_BLESS=1 writes schemas/plan.json anew");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    for (case, plan) in scenes::all() {
        let problems: Vec<String> =
            validator.iter_errors(&plan_json(&plan)).map(|problem| problem.to_string()).collect();
        assert!(problems.is_empty(), "{case}: {problems:?}");
    }
    assert!(!validator.is_valid(&serde_json::json!({"schema": "sbx.plan"})));
}
