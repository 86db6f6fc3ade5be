//! Single values: what a text means, or what is wrong with it. Places are added by the caller.

use std::time::Duration;

use jiff::SignedDuration;
use semver::VersionReq;

use super::super::{ManagedFields, Problem};
use crate::suggest::{either, nearest};

/// What a text means, or a problem whose place the caller knows.
pub(super) type Meaning<T> = Result<T, Problem>;

pub(super) fn wrong<T>(problem: Problem) -> Meaning<T> {
    Err(problem)
}

pub(super) fn says(message: String) -> Problem {
    Problem::new(0..0, message)
}

/// A step's id.
pub(super) fn id(text: &str) -> Meaning<String> {
    let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if text.len() > 63 {
        return wrong(says("the id is too long".into()).label("63 characters at most: an approval is typed with it"));
    }
    if text.chars().all(valid) {
        return Ok(text.into());
    }
    let near: String = text.to_lowercase().chars().map(|c| if valid(c) { c } else { '-' }).collect();
    wrong(
        says(format!("`{text}` is no step id"))
            .did_you_mean(Some(near.as_str()).filter(|_| text.is_ascii()))
            .hint("an id holds lower-case letters, digits and dashes"),
    )
}

/// A JSON pointer to a field.
pub(super) fn pointer(text: &str) -> Meaning<String> {
    if text.starts_with('/') && text.len() > 1 {
        return Ok(text.into());
    }
    let near = format!("/{}", text.trim_start_matches('.').replace('.', "/"));
    wrong(says(format!("`{text}` is no JSON pointer")).did_you_mean(Some(&near)))
}

/// The uid of an object.
pub(super) fn uid(text: &str) -> Meaning<String> {
    let hex = |part: &str, length: usize| part.len() == length && part.chars().all(|c| c.is_ascii_hexdigit());
    let parts: Vec<&str> = text.split('-').collect();
    if parts.len() == 5 && parts.iter().zip([8, 4, 4, 4, 12]).all(|(part, length)| hex(part, length)) {
        return Ok(text.to_lowercase());
    }
    wrong(says(format!("`{text}` is no uid")).hint(
        "the uid of a cluster is that of its namespace kube-system:\n\
         kubectl get namespace kube-system -o jsonpath='{.metadata.uid}'",
    ))
}

/// A duration.
pub(super) fn duration(text: &str) -> Meaning<Duration> {
    const HINT: &str = "a duration is like `90s`, `30m` or `1h30m`";
    if let Some(duration) = text.parse::<SignedDuration>().ok().and_then(|duration| duration.try_into().ok()) {
        return Ok(duration);
    }
    let problem = says(format!("`{text}` is no duration"));
    let trimmed = text.trim();
    if !trimmed.is_empty() && trimmed.chars().all(|c| c.is_ascii_digit()) {
        return wrong(problem.label("it lacks a unit").hint(HINT));
    }
    let days = trimmed.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
    match days.parse::<u32>() {
        Ok(days) if trimmed[days.to_string().len().min(trimmed.len())..].trim().starts_with('d') => {
            wrong(problem.did_you_mean(Some(&format!("{}h", u64::from(days) * 24))).hint(HINT))
        }
        _ => wrong(problem.hint(HINT)),
    }
}

/// A duration that is not nothing.
pub(super) fn some_duration(text: &str) -> Meaning<Duration> {
    match duration(text)? {
        Duration::ZERO => wrong(says(format!("`{text}` leaves no time at all"))),
        duration => Ok(duration),
    }
}

/// A range of image tags.
pub(super) fn image(text: &str) -> Meaning<VersionReq> {
    let error = match text.trim().parse::<VersionReq>() {
        Ok(range) => return Ok(range),
        Err(error) => error,
    };
    let bare = text.replace('v', "");
    let near = Some(bare).filter(|bare| bare != text && bare.parse::<VersionReq>().is_ok());
    wrong(
        says(format!("`{text}` is no range of versions: {error}"))
            .did_you_mean(near.as_deref())
            .hint("a range is like `>=0.15.0` or `>=1.0.0, <2.0.0`"),
    )
}

/// The digest of an image.
pub(super) fn digest(text: &str) -> Meaning<String> {
    let hex = |hash: &str| hash.len() == 64 && hash.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c));
    if text.strip_prefix("sha256:").is_some_and(hex) {
        return Ok(text.into());
    }
    wrong(says(format!("`{text}` is no digest")).hint("a digest is `sha256:` and 64 hexadecimal digits"))
}

/// What happens to managedFields entries that name `from`.
pub(super) fn managed_fields(text: &str) -> Meaning<ManagedFields> {
    const NAMES: [&str; 3] = ["relabel", "drop", "keep"];
    match text {
        "relabel" => Ok(ManagedFields::Relabel),
        "drop" => Ok(ManagedFields::Drop),
        "keep" => Ok(ManagedFields::Keep),
        _ => wrong(
            says(format!("unknown value `{text}` of `managed-fields`"))
                .did_you_mean(nearest(text, NAMES))
                .hint(format!("it is {}", either(NAMES))),
        ),
    }
}

/// The address of a pull request.
pub(super) fn address(text: &str) -> Meaning<String> {
    if text.starts_with("https://") || text.starts_with("http://") {
        return Ok(text.into());
    }
    wrong(says(format!("`{text}` is no address")).hint("it starts with `https://`"))
}

/// The folder of a backup.
pub(super) fn backup_folder(text: &str) -> Meaning<String> {
    let left = text.replace("{run}", "");
    if let Some(start) = left.find(['{', '}']) {
        let found = &left[start..left[start..].find('}').map_or(left.len(), |end| start + end + 1)];
        return wrong(
            says(format!("unknown placeholder `{found}` in `to`"))
                .label("the only placeholder is `{run}`, the run's id"),
        );
    }
    Ok(text.into())
}

/// The status of a condition.
pub(super) fn condition_status(text: &str) -> Meaning<String> {
    const STATUSES: [&str; 3] = ["True", "False", "Unknown"];
    if STATUSES.contains(&text) {
        return Ok(text.into());
    }
    wrong(
        says(format!("unknown value `{text}` of `status`"))
            .did_you_mean(nearest(text, STATUSES))
            .hint(format!("the status of a condition is {}", either(STATUSES))),
    )
}
