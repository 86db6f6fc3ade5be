//! Manifests in files: YAML or JSON, one document or many, a file or a folder of them.
//!
//! Scalars are read as kubectl reads them. Messages name the file and the document, never its
//! text: a manifest can be a Secret.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::object::Object;

/// Endings of the files that a folder is searched for, as kubectl does.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Every object in a file, or in the files of a folder (not below it) by name.
///
/// # Errors
/// What cannot be read, or is no object.
pub fn read_objects(path: &Path) -> Result<Vec<Object>, String> {
    let mut objects = Vec::new();
    for file in files(path)? {
        let shown = file.display();
        let text = fs::read_to_string(&file).map_err(|error| format!("{shown}: {error}"))?;
        let is_json = file.extension().is_some_and(|ending| ending == "json");
        let documents = if is_json { parse_json(&text) } else { parse_yaml(&text) };
        for (index, document) in documents.map_err(|words| format!("{shown}: {words}"))?.into_iter().enumerate() {
            let nth = index + 1;
            flatten(document, &mut objects).map_err(|words| format!("{shown}, document {nth}: {words}"))?;
        }
    }
    Ok(objects)
}

fn files(path: &Path) -> Result<Vec<PathBuf>, String> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let shown = path.display();
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(|error| format!("{shown}: {error}"))? {
        let file = entry.map_err(|error| format!("{shown}: {error}"))?.path();
        let ending = file.extension().and_then(|ending| ending.to_str());
        if file.is_file() && ending.is_some_and(|ending| ENDINGS.contains(&ending)) {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() { Err(format!("{shown} holds no .yaml, .yml or .json file")) } else { Ok(files) }
}

fn parse_yaml(text: &str) -> Result<Vec<Value>, String> {
    // The file is the user's own, and a CRD passes the default budget.
    let options = serde_saphyr::options! { budget: None, legacy_octal_numbers: true, with_snippet: false };
    serde_saphyr::from_multiple_with_options(text, options).map_err(|error| error.to_string())
}

fn parse_json(text: &str) -> Result<Vec<Value>, String> {
    serde_json::Deserializer::from_str(text)
        .into_iter()
        .collect::<Result<_, _>>()
        .map_err(|error: serde_json::Error| error.to_string())
}

/// Takes a document apart: a `List` is its items, an empty document is nothing.
fn flatten(document: Value, objects: &mut Vec<Object>) -> Result<(), String> {
    let mut object = Object(document);
    if object.0.is_null() {
        return Ok(());
    }
    if object.kind().ends_with("List")
        && let Some(Value::Array(items)) = object.0.get_mut("items").map(Value::take)
    {
        return items.into_iter().try_for_each(|item| flatten(item, objects));
    }
    let missing = [("apiVersion", object.api_version()), ("kind", object.kind()), ("metadata.name", object.name())];
    if let Some((field, _)) = missing.iter().find(|(_, value)| value.is_empty()) {
        return Err(format!("has no {field}"));
    }
    objects.push(object);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(files: &[(&str, &str)]) -> Result<Vec<Object>, String> {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            fs::write(folder.path().join(name), text).expect("a file");
        }
        let shown = format!("{}/", folder.path().display());
        let path = if let [(name, _)] = files { folder.path().join(name) } else { folder.path().to_owned() };
        read_objects(&path).map_err(|words| words.replace(&shown, ""))
    }

    const ONE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

    #[test]
    fn files_folders_and_lists_are_read_in_order() {
        let two = format!("---\n# nothing\n---\n{ONE}---\n{}", ONE.replace("name: a", "name: b"));
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}},
        ]});
        let files = [("b.json", list.to_string()), ("a.yml", two), ("c.txt", "no: object".into())];
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let names: Vec<String> = read(&files).expect("objects").iter().map(|object| object.name().to_owned()).collect();
        assert_eq!(names, ["a", "b", "c"]);
    }

    #[test]
    fn scalars_are_read_as_kubectl_reads_them() {
        let text = format!("{ONE}data: {{a: yes, b: 'yes', c: 0755, d: 2026-12-01, e: 1.0.0, f: ~}}\n");
        let objects = read(&[("a.yaml", &text)]).expect("one");
        let wanted = json!({"a": true, "b": "yes", "c": 493, "d": "2026-12-01", "e": "1.0.0", "f": null});
        assert_eq!(objects[0].0["data"], wanted);
    }

    #[test]
    fn what_is_wrong_is_named_by_file_and_document_and_never_quoted() {
        let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: canary, a: canary}\n";
        let table = [
            (ONE.replace("name: a", "nam: a"), "a.yaml, document 1: has no metadata.name"),
            (format!("{ONE}---\nkind: X\n"), "a.yaml, document 2: has no apiVersion"),
            ("- canary\n".into(), "a.yaml, document 1: has no apiVersion"),
            ("canary".into(), "a.yaml, document 1: has no apiVersion"),
        ];
        for (text, wanted) in table {
            assert_eq!(read(&[("a.yaml", &text)]), Err(wanted.into()));
        }
        let words = read(&[("a.yaml", secret)]).expect_err("a key twice");
        assert!(words.starts_with("a.yaml: ") && words.contains("line 4") && !words.contains("canary"), "{words}");
        let words = read(&[("a.yaml", "a: [canary")]).expect_err("not closed");
        assert!(!words.contains("canary"), "{words}");
        let words = read(&[("a.json", "{\"a\": \"canary\"")]).expect_err("not closed");
        assert!(words.starts_with("a.json: ") && !words.contains("canary"), "{words}");
        assert!(
            read(&[("x.txt", ""), ("y.txt", "")]).expect_err("none").ends_with("holds no .yaml, .yml or .json file")
        );
        assert!(read_objects(Path::new("nowhere.yaml")).expect_err("none").starts_with("nowhere.yaml: "));
    }
}
