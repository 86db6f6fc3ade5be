//! How a run ended, and what comes next: the last lines of `sbx apply`.

use std::path::Path;

use super::{
    View,
    errors::said,
    escape::{shell_word, visible},
    fold::full_name,
    styles::Role,
    words::plural,
    wrap::{hang, wrap},
};
use crate::{apply::Ending, steps::Stop};

/// What came of a run of this runbook.
pub fn ending_text(ending: &Ending, runbook: &Path, view: &View) -> String {
    let runbook = shell_word(&runbook.to_string_lossy());
    let again = format!("Next: sbx apply {runbook}   (does the rest)");
    let mut page = Lines { view, lines: Vec::new() };
    match ending {
        Ending::NoChanges => page.text(Role::Good, "No changes: nothing was asked, nothing was written."),
        Ending::Finished => {
            page.text(Role::Good, "Apply complete.");
            page.command(&format!("Check: sbx plan {runbook}   (expect: No changes)"));
        }
        Ending::Blocked => {
            page.text(Role::Blocker, "Apply refuses: the plan above has blockers. Nothing was written.");
            page.command(&format!("Next, once what it names is mended: sbx apply {runbook}"));
        }
        Ending::Unmet(gates) => {
            let count = plural(gates.len(), "gate");
            let (it, is) = if gates.len() == 1 { ("it", "it is") } else { ("them", "they are") };
            page.text(Role::Warning, &format!("Stopped at {count}; nothing that depends on {it} ran:"));
            for (id, found) in gates {
                page.lines.extend(hang("  ", &format!("{}: {}", visible(&id.0), visible(found)), 4, view.width));
            }
            page.command(&format!("Next, once {is} open: sbx apply {runbook}"));
        }
        Ending::NeedsApproval(flag) => {
            let flag = visible(flag);
            let text = format!("Stopped: approval is needed and nobody can be asked. {flag} gives it.");
            page.text(Role::Warning, &text);
        }
        Ending::Declined(what) => {
            page.text(Role::Warning, &format!("Declined {}. Nothing after it ran.", visible(what)));
        }
        Ending::Failed(id, stop) => {
            page.stop(&visible(&id.0), stop);
            page.text(Role::Heading, "What is done is kept.");
            page.command(&again);
        }
        Ending::Locked(who) => {
            page.text(Role::Blocker, &format!("Another apply holds the lock: {}. Nothing was written.", visible(who)));
            page.command(&format!("Next, once it is free: sbx apply {runbook}"));
        }
        Ending::Interrupted(how_far) => {
            page.text(Role::Warning, &format!("Interrupted {}. What is done is kept.", visible(how_far)));
            page.command(&again);
        }
        Ending::LockLost { why, how_far } => {
            let text = format!("The lock was lost: {}. Stopped {}.", visible(why), visible(how_far));
            page.text(Role::Blocker, &text);
            page.text(Role::Heading, "What is done is kept.");
            page.command(&format!("Next, once no other apply runs: sbx apply {runbook}"));
        }
    }
    page.lines.iter().flat_map(|line| [line, "\n"]).collect()
}

/// What is said by a run that does not wait for the answers to what it sent.
pub fn left_at_once(in_flight: &[String]) -> String {
    let mut lines = vec![match in_flight.len() {
        0 => "left at once: no write was in flight".to_owned(),
        sent => format!("left at once: the outcome of {} in flight is unknown:", plural(sent, "write")),
    }];
    lines.extend(in_flight.iter().map(|attempt| format!("  {}", visible(attempt))));
    lines.push("the lock expires by itself within a minute; then plan again".into());
    lines.join("\n")
}

struct Lines<'a> {
    view: &'a View,
    lines: Vec<String>,
}

impl Lines<'_> {
    fn text(&mut self, role: Role, text: &str) {
        self.lines.extend(wrap(text, self.view.width).iter().map(|line| self.view.styles.paint(role, line)));
    }

    /// Never wrapped: it is there to be copied.
    fn command(&mut self, line: &str) {
        self.lines.push(self.view.styles.paint(Role::Command, line));
    }

    fn stop(&mut self, step: &str, stop: &Stop) {
        let (text, failures, hint) = match stop {
            Stop::Failed { text, failures, hint } => (text, failures.as_slice(), hint.as_deref()),
            Stop::Unmet(text) | Stop::Interrupted(text) => (text, &[][..], None),
        };
        self.lines.extend(said(&format!("{step} failed"), Role::Blocker, text, self.view));
        for (object, words) in failures {
            let object = object.as_ref().map_or_else(String::new, |object| format!("{}: ", full_name(object)));
            self.lines.extend(hang("  ", &format!("{object}{}", visible(words)), 4, self.view.width));
        }
        if let Some(hint) = hint {
            self.lines.extend(said("hint", Role::Heading, hint, self.view));
        }
    }
}
