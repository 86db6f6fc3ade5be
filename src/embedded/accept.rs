//! Objects as they come in requests: parsed, of the right type, pruned, defaulted.

use serde_json::Value;

use super::json::text;
use super::route::{Request, Target, Validation};
use super::status::{Cause, Named, Refusal};
use super::{meta, schema};

/// The body of a request as JSON. A number without a fraction is an integer, as in the server.
pub(super) fn body(request: &Request, attempt: &str) -> Result<Value, Refusal> {
    let mut body = serde_json::from_slice(&request.body)
        .map_err(|error| Refusal::bad_request(format!("error decoding {attempt}: {error}")))?;
    whole_numbers(&mut body);
    Ok(body)
}

fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let Some(float) = number.as_f64() else { return };
            // Within these bounds a double holds every integer.
            if float.fract() == 0.0 && float.abs() < 9e15 {
                #[expect(clippy::cast_possible_truncation, reason = "no fraction, and within the bounds of i64")]
                let whole = float as i64;
                *value = whole.into();
            }
        }
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        _ => {}
    }
}

/// What a create or a replacement calls itself.
pub(super) fn check_version(target: &Target, object: &Value) -> Result<(), Refusal> {
    if !object.is_object() {
        let kind = &target.kind.kind;
        return Err(Refusal::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind"
        )));
    }
    let (expected, found) = (target.api_version(), text(object, "/apiVersion"));
    if found.is_empty() || found == expected {
        return Ok(());
    }
    Err(Refusal::bad_request(format!(
        "the API version in the data ({found}) does not match the expected API version ({expected})"
    )))
}

/// An object as the kind takes it. Fields that its schema does not know are dropped, and named in `unknown`.
pub(super) fn accept(target: &Target, mut object: Value, unknown: &mut Vec<String>) -> Result<Value, Refusal> {
    let kind = &target.kind;
    let expected = target.api_version();
    for (field, expected) in [("apiVersion", &expected), ("kind", &kind.kind)] {
        let found = object[field].as_str().unwrap_or_default();
        if !found.is_empty() && found != expected {
            let named = if field == "kind" { found } else { &kind.kind };
            let named = Named::new(&kind.group, named, text(&object, "/metadata/name"));
            let cause = Cause::invalid(field, &found.into(), &format!("must be {expected}"));
            return Err(Refusal::invalid(&named, &[cause]));
        }
    }
    object["apiVersion"] = expected.into();
    object["kind"] = kind.kind.clone().into();
    meta::coerce(&mut object, unknown);
    kind.fill(&mut object);
    if kind.definition.is_some() {
        let schema = kind.version(&target.version).and_then(|version| version.schema.as_ref());
        unknown.extend(schema::prune(&mut object, schema));
        schema::default(&mut object, schema);
    }
    Ok(object)
}

/// Refuses unknown fields where the request wants that, and answers the warnings where it does not.
pub(super) fn judge(
    validation: Validation,
    mut unknown: Vec<String>,
    refusal: impl FnOnce(&str) -> Refusal,
) -> Result<Vec<String>, Refusal> {
    unknown.sort();
    let words: Vec<_> = unknown.iter().map(|field| format!("unknown field {field:?}")).collect();
    match validation {
        Validation::Strict if !words.is_empty() => {
            Err(refusal(&format!("strict decoding error: {}", words.join(", "))))
        }
        Validation::Warn => Ok(words),
        Validation::Strict | Validation::Ignore => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_without_a_fraction_is_an_integer() {
        let mut value = json!({"a": 1.0, "b": [2.5, -3.0], "c": 1e300});
        whole_numbers(&mut value);
        assert_eq!(value.to_string(), json!({"a": 1, "b": [2.5, -3], "c": 1e300}).to_string());
    }
}
