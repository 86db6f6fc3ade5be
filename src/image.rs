//! Image references: which version a container runs, and whether it is in a wanted range. Pure.

use std::fmt;

use semver::{Comparator, Op, Version, VersionReq};

/// `registry:port/repository:tag@digest`, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image<'a> {
    /// Registry and path, without tag and digest.
    pub repository: &'a str,
    /// Tag, if it has one.
    pub tag: Option<&'a str>,
    /// Digest, `sha256:…`, if it has one.
    pub digest: Option<&'a str>,
}

impl<'a> Image<'a> {
    /// Takes a reference apart; never fails, since a cluster holds whatever somebody wrote.
    pub fn parse(reference: &'a str) -> Self {
        let (name, digest) = match reference.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (reference, None),
        };
        // A colon before the last slash belongs to the registry's port.
        let last = name.rfind('/').map_or(0, |slash| slash + 1);
        let (repository, tag) = match name[last..].find(':') {
            Some(colon) => (&name[..last + colon], Some(&name[last + colon + 1..])),
            None => (name, None),
        };
        let filled = |text: Option<&'a str>| text.filter(|text| !text.is_empty());
        Self { repository, tag: filled(tag), digest: filled(digest) }
    }

    /// The tag as a version; a leading `v` is left out. None for `latest`, `1.2` and the like.
    pub fn version(&self) -> Option<Version> {
        let tag = self.tag?;
        Version::parse(tag.strip_prefix('v').unwrap_or(tag)).ok()
    }

    /// Whether it is what is wanted.
    pub fn judge(&self, wanted: &VersionReq, digests: &[String]) -> Judged {
        if self.digest.is_some_and(|digest| digests.iter().any(|known| known == digest)) {
            return Judged::KnownDigest;
        }
        match self.version() {
            Some(version) if satisfies(&version, wanted) => Judged::InRange,
            Some(_) => Judged::OutOfRange,
            None => Judged::NotComparable,
        }
    }
}

/// What there is to say about an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// Its tag is a version in the range.
    InRange,
    /// Its digest is one of those accepted.
    KnownDigest,
    /// Its tag is a version outside the range.
    OutOfRange,
    /// Neither says anything: `latest`, no tag, a digest nobody listed.
    NotComparable,
}

impl Judged {
    /// Whether the image will do.
    pub fn is_wanted(self) -> bool {
        matches!(self, Self::InRange | Self::KnownDigest)
    }
}

/// The tag, else the digest, shortened to what tells images apart.
impl fmt::Display for Image<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.tag, self.digest) {
            (Some(tag), _) => f.write_str(tag),
            (None, Some(digest)) => f.write_str(digest.get(..19).unwrap_or(digest)),
            (None, None) => f.write_str("without a tag"),
        }
    }
}

/// Whether a version is in a range, a prerelease too: it must follow every lower bound by
/// precedence, and the release it leads to must be in the range.
///
/// So `0.15.0-rc.1` is below `>=0.15.0`, `0.16.0-rc.1` is in it, and `1.0.0-rc.1` is not in `<1.0.0`.
pub fn satisfies(version: &Version, wanted: &VersionReq) -> bool {
    if wanted.matches(version) {
        return true;
    }
    let release = Version::new(version.major, version.minor, version.patch);
    !version.pre.is_empty()
        && wanted.matches(&release)
        && wanted.comparators.iter().filter_map(lower_bound).all(|bound| *version >= bound)
}

/// The lowest version a comparator lets pass; none when it has no lower bound.
fn lower_bound(comparator: &Comparator) -> Option<Version> {
    let Comparator { op, major, minor, patch, pre } = comparator;
    let mut bound = Version::new(*major, minor.unwrap_or(0), patch.unwrap_or(0));
    bound.pre = pre.clone();
    match (op, minor, patch) {
        (Op::Less | Op::LessEq, ..) => return None,
        // `>0.15` leaves out all of 0.15.
        (Op::Greater, None, _) => bound.major = bound.major.saturating_add(1),
        (Op::Greater, _, None) => bound.minor = bound.minor.saturating_add(1),
        _ => {}
    }
    Some(bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_come_apart() {
        let table = [
            ("generator:v0.15.2", "generator", Some("v0.15.2"), None),
            ("ghcr.io/a/b:1.2.3", "ghcr.io/a/b", Some("1.2.3"), None),
            ("registry.test:5000/a/b", "registry.test:5000/a/b", None, None),
            ("registry.test:5000/a/b:v0.10.0@sha256:ab", "registry.test:5000/a/b", Some("v0.10.0"), Some("sha256:ab")),
            ("[::1]:5000/a:1.0.0", "[::1]:5000/a", Some("1.0.0"), None),
            ("a/b@sha256:ab", "a/b", None, Some("sha256:ab")),
            ("a", "a", None, None),
            ("a:", "a", None, None),
            ("", "", None, None),
            ("@", "", None, None),
        ];
        for (text, repository, tag, digest) in table {
            assert_eq!(Image::parse(text), Image { repository, tag, digest }, "{text}");
        }
    }

    #[test]
    fn ranges_follow_precedence() {
        let table = [
            ("0.10.0", ">=0.5.0", true),
            ("0.15.0", ">=0.15.0", true),
            ("0.14.9", ">=0.15.0", false),
            ("0.15.0-rc.1", ">=0.15.0", false),
            ("0.16.0-rc.1", ">=0.15.0", true),
            ("0.15.0-rc.2", ">=0.15.0-rc.1", true),
            ("0.15.0-rc.1", ">=0.15.0-rc.2", false),
            ("1.0.0-rc.1", "<1.0.0", false),
            ("1.0.0-rc.1", ">=0.15.0, <1.0.0", false),
            ("0.9.0-rc.1", ">=0.15.0, <1.0.0", false),
            ("1.1.0-rc.1", "^1.0.0", true),
            ("2.0.0-rc.1", "^1.0.0", false),
            ("1.0.0-rc.1", "=1.0.0", false),
            ("0.16.0-rc.1", ">0.15", false),
            ("0.16.1-rc.1", ">0.15", true),
            ("2.0.0-rc.1", ">1", false),
            ("0.15.3-rc.1", "~0.15.2", true),
            ("3.0.0-rc.1", "*", true),
        ];
        for (version, wanted, verdict) in table {
            let (parsed, range) = (Version::parse(version).expect(version), VersionReq::parse(wanted).expect(wanted));
            assert_eq!(satisfies(&parsed, &range), verdict, "{version} in {wanted}");
        }
    }

    #[test]
    fn every_reference_has_its_verdict() {
        let digests = ["sha256:ab".to_owned()];
        let table = [
            ("a:v0.15.0", Judged::InRange),
            ("a:0.15.0", Judged::InRange),
            ("a:v0.15.0@sha256:cd", Judged::InRange),
            ("a:v0.14.0", Judged::OutOfRange),
            ("a:v0.15.0-rc.1", Judged::OutOfRange),
            // The digest decides what runs, so a listed one outweighs the tag beside it.
            ("a:v0.14.0@sha256:ab", Judged::KnownDigest),
            ("a@sha256:ab", Judged::KnownDigest),
            ("a@sha256:cd", Judged::NotComparable),
            ("a:latest", Judged::NotComparable),
            ("a:0.15", Judged::NotComparable),
            ("a", Judged::NotComparable),
        ];
        let wanted = VersionReq::parse(">=0.15.0").expect("a range");
        for (reference, verdict) in table {
            assert_eq!(Image::parse(reference).judge(&wanted, &digests), verdict, "{reference}");
        }
    }
}
