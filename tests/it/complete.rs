//! No test file is forgotten: one that `main.rs` does not name compiles nowhere and fails nowhere.

use std::{collections::BTreeSet, fs, path::Path};

#[test]
fn every_file_is_a_module() {
    for binary in ["it", "e2e"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(binary);
        let main = fs::read_to_string(folder.join("main.rs")).expect("a main.rs");
        let named: BTreeSet<String> = main
            .lines()
            .filter_map(|line| line.strip_prefix("mod ").or_else(|| line.strip_prefix("pub mod ")))
            .map(|rest| rest.trim_end_matches(';').to_owned())
            .collect();
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let is_module = path.extension().is_some_and(|ending| ending == "rs") || path.join("mod.rs").is_file();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            if is_module && name != "main" {
                assert!(named.contains(&name), "tests/{binary}/main.rs does not name {name}");
            }
        }
    }
}
