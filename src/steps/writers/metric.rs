//! `apiserver_request_total`, as far as it is about writes at the version that goes. Pure.

use std::collections::BTreeMap;

const METRIC: &str = "apiserver_request_total{";
/// Reads are left out: looking at `from` is no harm, and it is what we do ourselves.
const MUTATING: [&str; 6] = ["POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"];

/// Mutating requests of one verb on one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// `plural.group`.
    pub resource: String,
    /// `POST`, `PATCH`, …
    pub verb: String,
    /// How many since the API server started, whatever it answered; dry runs aside.
    pub requests: u64,
}

/// The counts in a text of metrics that are not zero, by resource and verb.
pub fn counts(text: &str, from: &str, crds: &[String]) -> Vec<Count> {
    let mut sums: BTreeMap<(String, String), u64> = BTreeMap::new();
    for line in text.lines() {
        let Some((labels, requests)) = line.strip_prefix(METRIC).and_then(sample) else { continue };
        let label = |name: &str| labels.get(name).map_or("", String::as_str);
        let resource = format!("{}.{}", label("resource"), label("group"));
        let verb = label("verb");
        let meant = label("version") == from && label("dry_run").is_empty() && crds.contains(&resource);
        if meant && MUTATING.contains(&verb) && requests > 0 {
            *sums.entry((resource, verb.to_owned())).or_default() += requests;
        }
    }
    sums.into_iter().map(|((resource, verb), requests)| Count { resource, verb, requests }).collect()
}

/// When the server that answered began to count, as it says it: another one counts anew.
pub fn process(text: &str) -> Option<&str> {
    let started = text.lines().find_map(|line| line.strip_prefix("process_start_time_seconds "))?;
    started.split_whitespace().next()
}

/// Labels and value of a line behind its metric's name and brace.
fn sample(line: &str) -> Option<(BTreeMap<String, String>, u64)> {
    let mut labels = BTreeMap::new();
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(value) = rest.strip_prefix('}') {
            return Some((labels, whole(value)?));
        }
        let (name, quoted) = rest.split_once("=\"")?;
        let (value, after) = unquote(quoted)?;
        labels.insert(name.to_owned(), value);
        rest = after;
    }
}

/// A label's value up to its closing quote, and what follows.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

/// A counter's value; Prometheus writes large ones as `1.2e+06`, and may add a time.
fn whole(text: &str) -> Option<u64> {
    let value: f64 = text.split_whitespace().next()?.parse().ok()?;
    if !(0.0..1e18).contains(&value) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 1e18, checked above")]
    Some(value as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(verb: &str, version: &str, resource: &str, more: &str, value: &str) -> String {
        format!(
            "apiserver_request_total{{code=\"201\",component=\"apiserver\",dry_run=\"\",group=\"demo.test\",\
             resource=\"{resource}\",scope=\"resource\",subresource=\"\",verb=\"{verb}\",version=\"{version}\"{more}}} {value}"
        )
    }

    #[test]
    fn only_writes_at_the_old_version_of_the_upgrades_kinds_count() {
        let dry = line("PATCH", "v1alpha1", "widgets", "", "9").replace("dry_run=\"\"", "dry_run=\"All\"");
        let other_group = line("POST", "v1alpha1", "widgets", "", "9").replace("demo.test", "other.test");
        let table = [
            (line("POST", "v1alpha1", "widgets", "", "3"), Some(("POST", 3))),
            (line("APPLY", "v1alpha1", "widgets", "", "1.5e+03"), Some(("APPLY", 1500))),
            (
                line("DELETECOLLECTION", "v1alpha1", "widgets", ",x=\"a\\\"}b\"", "1 1764600000"),
                Some(("DELETECOLLECTION", 1)),
            ),
            (line("POST", "v1alpha1", "widgets", "", "0"), None),
            (line("LIST", "v1alpha1", "widgets", "", "9"), None),
            (line("GET", "v1alpha1", "widgets", "", "9"), None),
            (line("WATCH", "v1alpha1", "widgets", "", "9"), None),
            (line("POST", "v1beta1", "widgets", "", "9"), None),
            (line("POST", "v1alpha1", "gadgets", "", "9"), None),
            (line("POST", "v1alpha1", "widgets", "", "NaN"), None),
            (line("POST", "v1alpha1", "widgets", "", "-1"), None),
            (dry, None),
            (other_group, None),
            ("apiserver_request_total{verb=\"POST".into(), None),
            ("apiserver_request_total{} 3".into(), None),
            ("# HELP apiserver_request_total Counter".into(), None),
        ];
        for (text, wanted) in table {
            let found = counts(&text, "v1alpha1", &["widgets.demo.test".into()]);
            let found: Vec<(&str, u64)> = found.iter().map(|count| (count.verb.as_str(), count.requests)).collect();
            assert_eq!(found, wanted.into_iter().collect::<Vec<_>>(), "{text}");
        }
    }

    #[test]
    fn a_server_is_told_by_when_it_started() {
        let text = "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds 1.76460000123e+09\nother 1\n";
        assert_eq!(process(text), Some("1.76460000123e+09"));
        assert_eq!(process("process_start_time_seconds_total 3\n"), None);
    }

    #[test]
    fn answers_of_every_code_are_added_up() {
        let created = line("POST", "v1alpha1", "widgets", "", "3");
        let refused = created.replace("201", "422");
        let text = format!("{created}\n{refused}\n{}\n", line("PUT", "v1alpha1", "widgets", "", "1"));
        let found = counts(&text, "v1alpha1", &["widgets.demo.test".into()]);
        let found: Vec<(&str, u64)> = found.iter().map(|count| (count.verb.as_str(), count.requests)).collect();
        assert_eq!(found, [("POST", 6), ("PUT", 1)]);
    }
}
