//! The nearest valid name, for "did you mean".

/// How alike two names must be, from 0 to 1: below it a guess misleads more than it helps.
const ALIKE: f32 = 0.7;

/// The valid name that is nearest to what was written, if one is near at all.
pub fn nearest<'a>(written: &str, valid: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let valid: Vec<&str> = valid.into_iter().collect();
    let lower = written.to_lowercase();
    // The comparison is quadratic in length, and no name anybody mistyped is this long.
    if lower.chars().count() > 120 {
        return None;
    }
    if let Some(same) = valid.iter().find(|name| name.to_lowercase() == lower) {
        return Some(same);
    }
    similar::get_close_matches(written, &valid, 1, ALIKE).first().copied()
}

/// Names in backticks, with commas and an `or` before the last.
pub fn either<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    listed(names, "or")
}

/// Names in backticks, with commas and an `and` before the last.
pub fn both<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    listed(names, "and")
}

fn listed<'a>(names: impl IntoIterator<Item = &'a str>, last_word: &str) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} {last_word} {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let valid = ["client", "writers", "backup", "migrate"];
        assert_eq!(nearest("cleint", valid), Some("client"));
        assert_eq!(nearest("Migrate", valid), Some("migrate"));
        assert_eq!(nearest("xyz", valid), None);
        assert_eq!(nearest("", valid), None);
        assert_eq!(nearest("client", []), None);
        assert_eq!(nearest(&"client".repeat(100_000), valid), None);
    }

    #[test]
    fn lists_names() {
        assert_eq!(either([]), "");
        assert_eq!(either(["a"]), "`a`");
        assert_eq!(either(["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(both(["a", "b"]), "`a` and `b`");
    }
}
