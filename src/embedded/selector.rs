//! `fieldSelector` and `labelSelector`: which objects of a list or a watch are meant.

use serde_json::Value;

use super::json::text;
use super::status::Refusal;

/// What an object must be like.
#[derive(Clone, Debug, Default)]
pub(super) struct Selector {
    fields: Vec<(String, String, bool)>,
    labels: Vec<Label>,
}

#[derive(Clone, Debug)]
enum Label {
    Exists(String),
    Absent(String),
    Is(String, Vec<String>),
    IsNot(String, Vec<String>),
}

impl Selector {
    /// Reads both selectors.
    pub(super) fn read(fields: &str, labels: &str) -> Result<Self, Refusal> {
        let mut selector = Self::default();
        for term in fields.split(',').filter(|term| !term.is_empty()) {
            let (field, value, equal) = equality(term).ok_or_else(|| {
                Refusal::bad_request(format!("invalid selector: '{term}'; can't understand '{term}'"))
            })?;
            if !matches!(field, "metadata.name" | "metadata.namespace") {
                return Err(Refusal::bad_request(format!("field label not supported: {field}")));
            }
            selector.fields.push((field.into(), value.into(), equal));
        }
        for term in terms(labels) {
            selector.labels.push(label(term)?);
        }
        Ok(selector)
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        let field = |(field, value, equal): &(String, String, bool)| {
            (text(object, &format!("/{}", field.replace('.', "/"))) == value) == *equal
        };
        let labels = object.pointer("/metadata/labels");
        let of = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
        let label = |label: &Label| match label {
            Label::Exists(key) => of(key).is_some(),
            Label::Absent(key) => of(key).is_none(),
            Label::Is(key, values) => of(key).is_some_and(|value| values.iter().any(|it| it == value)),
            Label::IsNot(key, values) => of(key).is_none_or(|value| values.iter().all(|it| it != value)),
        };
        self.fields.iter().all(field) && self.labels.iter().all(label)
    }
}

/// Key, value, and whether they must be equal.
fn equality(term: &str) -> Option<(&str, &str, bool)> {
    if let Some((key, value)) = term.split_once("!=") {
        return Some((key.trim(), value.trim(), false));
    }
    let (key, value) = term.split_once("==").or_else(|| term.split_once('='))?;
    Some((key.trim(), value.trim(), true))
}

/// Splits at commas outside parentheses.
fn terms(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let split = |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    };
    text.split(split).map(str::trim).filter(|term| !term.is_empty()).collect()
}

fn label(term: &str) -> Result<Label, Refusal> {
    for (word, negated) in [(" notin ", true), (" in ", false)] {
        if let Some((key, values)) = term.split_once(word) {
            let values = values.trim().trim_start_matches('(').trim_end_matches(')');
            let values = values.split(',').map(|value| value.trim().to_owned()).collect();
            let key = key.trim().to_owned();
            return Ok(if negated { Label::IsNot(key, values) } else { Label::Is(key, values) });
        }
    }
    if let Some((key, value, equal)) = equality(term) {
        let (key, values) = (key.to_owned(), vec![value.to_owned()]);
        return Ok(if equal { Label::Is(key, values) } else { Label::IsNot(key, values) });
    }
    match term.strip_prefix('!') {
        Some(key) => Ok(Label::Absent(key.into())),
        None if term.contains(char::is_whitespace) => {
            Err(Refusal::bad_request(format!("unable to parse requirement: found '{term}'")))
        }
        None => Ok(Label::Exists(term.into())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_selected_by_name_and_label() {
        let object = json!({"metadata": {"name": "a", "namespace": "n", "labels": {"tier": "front"}}});
        for (fields, labels, matches) in [
            ("", "", true),
            ("metadata.name=a", "", true),
            ("metadata.name=b", "", false),
            ("metadata.name!=b,metadata.namespace=n", "", true),
            ("", "tier", true),
            ("", "!tier", false),
            ("", "tier=front", true),
            ("", "tier!=front", false),
            ("", "tier in (back, front),tier", true),
            ("", "tier notin (back, front)", false),
        ] {
            let selector = Selector::read(fields, labels).unwrap_or_else(|refusal| panic!("{}", refusal.message));
            assert_eq!(selector.matches(&object), matches, "{fields} {labels}");
        }
        assert!(Selector::read("spec.size=1", "").is_err());
    }
}
