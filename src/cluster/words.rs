//! The server's words, without the values that it quotes.
//!
//! A refusal names the field and then says what stood there: an environment variable, a part of a Secret. Where
//! a refusal is shown or written down the field is enough; the value stays between the file and the server.

/// Values in the words of a validation follow these.
const QUOTING: [&str; 3] = ["Invalid value: ", "Unsupported value: ", "Duplicate value: "];
/// A value of the wrong type, as server-side apply prints it: `&value.valueUnstructured{Value:…}`.
const OPENING: &str = "{Value:";
const HIDDEN: &str = "(not shown)";
/// Where a schema wants another type, these stand for the value.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// The words with every quoted value left out.
pub(super) fn without_values(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, mark)) = first_mark(rest) {
        let (before, value) = rest.split_at(at + mark.len());
        // Such a value is printed raw, so it may hold anything: what follows the last brace is no value.
        let end = if mark == OPENING { value.rfind('}').unwrap_or(value.len()) } else { length(value) };
        kept.push_str(before);
        let (value, after) = value.split_at(end);
        kept.push_str(if TYPES.contains(&value.trim_matches('"')) { value } else { HIDDEN });
        rest = after;
    }
    kept.push_str(rest);
    kept
}

fn first_mark(text: &str) -> Option<(usize, &'static str)> {
    let found = QUOTING.into_iter().chain([OPENING]).filter_map(|mark| Some((text.find(mark)?, mark)));
    found.min_by_key(|(at, _)| *at)
}

/// Bytes of the value at the start of a text: a quoted text, or a literal of Go or JSON up to what comes after it.
fn length(text: &str) -> usize {
    if text.starts_with('"') {
        return quoted(text);
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(char) = text[at..].chars().next() {
        let after = &text[at + char.len_utf8()..];
        match char {
            '"' => {
                at += quoted(&text[at..]);
                continue;
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return at,
            ')' | ']' | '}' => depth -= 1,
            ':' | ',' if depth == 0 && after.starts_with(' ') => return at,
            _ => {}
        }
        at += char.len_utf8();
    }
    at
}

/// Bytes of a quoted text, both quotes included; all of it when it never ends.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, char) in text.char_indices().skip(1) {
        match char {
            '\\' if !escaped => escaped = true,
            '"' if !escaped => return at + 1,
            _ => escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::without_values;

    #[test]
    fn fields_are_kept_and_values_are_not() {
        let table = [
            (r#"Invalid value: "canary": field is immutable"#, "Invalid value: (not shown): field is immutable"),
            (
                r#"[env[0].name: Invalid value: "a=\"canary\", b": bad, x: Unsupported value: "canary": supported values: "A", "B"]"#,
                r#"[env[0].name: Invalid value: (not shown): bad, x: Unsupported value: (not shown): supported values: "A", "B"]"#,
            ),
            (
                r#"spec: Invalid value: map[string]interface {}{"a":"canary: b, c"}: must not be set"#,
                "spec: Invalid value: (not shown): must not be set",
            ),
            (r#"spec: Invalid value: {"a": {"b": ["canary"]}}: no"#, "spec: Invalid value: (not shown): no"),
            ("[a: Invalid value: 4711, b: Required value]", "[a: Invalid value: (not shown), b: Required value]"),
            (
                r#"spec.x: Invalid value: "string": spec.x in body must be of type integer: "string""#,
                r#"spec.x: Invalid value: "string": spec.x in body must be of type integer: "string""#,
            ),
            (
                "errors:\n  .data.a: expected string, got &value.valueUnstructured{Value:map[x:canary} \n y:{canary}]}",
                "errors:\n  .data.a: expected string, got &value.valueUnstructured{Value:(not shown)}",
            ),
            (r#"Duplicate value: "canary"#, "Duplicate value: (not shown)"),
            (r#"Invalid value: "canary\"#, "Invalid value: (not shown)"),
            ("{Value:canary", "{Value:(not shown)"),
            ("widgets.demo.test \"a\" not found", "widgets.demo.test \"a\" not found"),
            ("", ""),
        ];
        for (text, wanted) in table {
            assert_eq!(without_values(text), wanted, "{text}");
        }
    }
}
