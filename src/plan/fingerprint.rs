//! A short code that a reviewer can compare.

use std::fmt;

use sha2::{Digest, Sha256};

/// Twelve hexadecimal digits over the hard facts of a plan: `a41c-90de-77b2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Over names and values in order; lengths keep neighbours apart.
    pub(super) fn of(facts: &[(String, String)]) -> Self {
        let mut hash = Sha256::new();
        for text in facts.iter().flat_map(|(name, value)| [name, value]) {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        }
        let digits: Vec<String> = hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        Self(digits.chunks(2).map(<[String]>::concat).collect::<Vec<_>>().join("-"))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
