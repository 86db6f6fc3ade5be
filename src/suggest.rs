//! The nearest valid name, for "did you mean".

/// How alike two names must be, from 0 to 1: below it a guess misleads more than it helps.
const ALIKE: f32 = 0.7;

/// So alike that it can hardly be another name.
const ALL_BUT_SAME: f32 = 0.82;

/// The valid name that is nearest to what was written, if one is near at all. Case does not count.
pub fn nearest<'a>(written: &str, valid: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    alike(written, valid, ALIKE)
}

/// The valid name that was meant, where a name that is not known may still be right.
pub fn mistyped<'a>(written: &str, valid: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    alike(written, valid, ALL_BUT_SAME).filter(|name| *name != written && name.len().abs_diff(written.len()) < 2)
}

fn alike<'a>(written: &str, valid: impl IntoIterator<Item = &'a str>, least: f32) -> Option<&'a str> {
    // The comparison is quadratic in length, and no name anybody mistyped is this long.
    if written.len() > 250 {
        return None;
    }
    let valid: Vec<(String, &str)> = valid.into_iter().map(|name| (name.to_lowercase(), name)).collect();
    let lower: Vec<&str> = valid.iter().map(|(lower, _)| lower.as_str()).collect();
    let near = *similar::get_close_matches(written.to_lowercase().as_str(), &lower, 1, least).first()?;
    valid.iter().find(|(lower, _)| lower == near).map(|(_, name)| *name)
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
        assert_eq!(nearest("kind", ["id", "needs"]), None);
        assert_eq!(nearest("client", []), None);
        assert_eq!(nearest(&"client".repeat(100_000), valid), None);
    }

    #[test]
    fn takes_a_name_of_its_own_at_its_word() {
        let kinds = ["Secret", "Service", "ServiceAccount", "PersistentVolumeClaim"];
        assert_eq!(mistyped("Sekret", kinds), Some("Secret"));
        assert_eq!(mistyped("secrets", kinds), Some("Secret"));
        for own in ["Secret", "ServiceMonitor", "PersistentVolume", "Gateway"] {
            assert_eq!(mistyped(own, kinds), None, "{own}");
        }
    }

    #[test]
    fn lists_names() {
        assert_eq!(either([]), "");
        assert_eq!(either(["a"]), "`a`");
        assert_eq!(either(["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(both(["a", "b"]), "`a` and `b`");
    }
}
