//! Which runbook is meant, read and ordered.

use std::{fs, path::PathBuf};

use crate::{
    error::Error,
    graph::{self, StepGraph},
    runbook::{Runbook, StepId},
    suggest,
};

/// Reads the runbook that is named, or the only one in `runbooks/`.
///
/// # Errors
/// No runbook is named and there is not exactly one; everything wrong with it.
pub(super) fn select(named: Option<PathBuf>) -> Result<(Runbook, StepGraph), Error> {
    let path = match named {
        Some(path) => path,
        None => only_one()?,
    };
    Ok(graph::load(&path)?)
}

fn only_one() -> Result<PathBuf, Error> {
    let mut found: Vec<PathBuf> = fs::read_dir("runbooks")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    found.sort();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Error::NoRunbook("name a runbook: there is no runbooks/*.toml here".into())),
        _ => {
            let names: Vec<String> = found.iter().map(|path| path.display().to_string()).collect();
            Err(Error::NoRunbook(format!("name one of these runbooks: {}", names.join(", "))))
        }
    }
}

/// A step by the name that was typed.
///
/// # Errors
/// The runbook has no such step.
pub(super) fn step(name: &str, runbook: &Runbook) -> Result<StepId, Error> {
    let known = || runbook.steps.iter().map(|step| step.id.0.as_str());
    if known().any(|id| id == name) {
        return Ok(StepId(name.into()));
    }
    Err(Error::NoStep {
        name: name.into(),
        near: suggest::nearest(name, known()).map(Into::into),
        known: known().map(Into::into).collect(),
    })
}
