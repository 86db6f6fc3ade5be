//! A file to a checked runbook.

use std::{
    fmt::Write as _,
    fs::File,
    io::{self, Read},
    ops::Range,
    path::Path,
};

use serde::Deserialize;
use sha2::{Digest, Sha256};
use toml::de::{DeTable, Deserializer};

use super::{Problem, Runbook, RunbookError, StepId, document::Document, resolve, spanned::Table, syntax};

/// A runbook is written by hand; anything larger is another file given by mistake.
const SIZE_LIMIT: u64 = 16 << 20;

/// A step and the steps it needs, as far as they are known.
pub type Declared = (StepId, Vec<StepId>);

/// Reads a runbook and checks all of it but the order: [`crate::graph::load`] checks that too.
///
/// # Errors
/// The file cannot be read, or its text is wrong; then every problem at once.
pub fn load(path: &Path) -> Result<Runbook, RunbookError> {
    load_with(path, |_| Vec::new())
}

/// Reads a runbook and checks it, cycles included, which `cycles` finds: each as steps that need
/// the next, the last one the first.
///
/// # Errors
/// As [`load`].
pub fn load_with(path: &Path, cycles: impl Fn(&[Declared]) -> Vec<Vec<StepId>>) -> Result<Runbook, RunbookError> {
    let bytes = read(path).map_err(|source| RunbookError::Unreadable { path: path.into(), source })?;
    let sha256 = hex(&Sha256::digest(&bytes));
    let invalid = |text: String, mut problems: Vec<Problem>| {
        problems.sort_by_key(|problem| problem.span.start);
        RunbookError::Invalid { path: path.into(), text, problems }
    };
    let text = match String::from_utf8(bytes) {
        // An editor's byte order mark is no part of the text, and would shift the first line's columns.
        Ok(text) => text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text),
        Err(error) => {
            let (text, problem) = not_utf8(error.as_bytes());
            return Err(invalid(text, vec![problem]));
        }
    };
    let (table, errors) = DeTable::parse_recoverable(&text);
    let mut problems = syntax::problems(&errors, &text);
    // Every value of the document is read leniently, so what is left to fail is the root, a table.
    match Table::<Document>::deserialize(Deserializer::from(table)) {
        Err(error) => problems.push(syntax::problem(&error, &text)),
        Ok(document) => match resolve::resolve(path, sha256, document, cycles) {
            Ok(runbook) if problems.is_empty() => return Ok(runbook),
            Ok(_) => {}
            Err(found) => {
                let found = syntax::beside(found, &problems, &text);
                problems.extend(found);
            }
        },
    }
    Err(invalid(text, problems))
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(SIZE_LIMIT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > SIZE_LIMIT {
        return Err(io::Error::other("it is larger than 16 MiB, which no runbook is"));
    }
    Ok(bytes)
}

/// The text as far as it can be shown, and where it stops being text.
fn not_utf8(bytes: &[u8]) -> (String, Problem) {
    let valid = match str::from_utf8(bytes) {
        Ok(text) => text.len(),
        Err(error) => error.valid_up_to(),
    };
    let span: Range<usize> = valid..valid + char::REPLACEMENT_CHARACTER.len_utf8();
    let byte = bytes.get(valid).copied().unwrap_or_default();
    let problem = Problem::new(span, "the runbook is not UTF-8 text").label(format!("byte 0x{byte:02x}"));
    let problem = if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        problem.hint("it starts like UTF-16: save it as UTF-8")
    } else {
        problem
    };
    (String::from_utf8_lossy(bytes).into_owned(), problem)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
