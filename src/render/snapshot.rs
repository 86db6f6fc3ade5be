//! What a snapshot holds, and what it does not.

use std::path::Path;

use super::{
    View,
    escape::{shell_word, visible},
    styles::Role,
    words::plural,
    wrap::hang,
};
use crate::snapshot::Summary;

/// Refusals that are named; the rest is counted.
const NAMED: usize = 12;

/// What was taken and what was left out, and what can be done with it.
pub fn snapshot_text(summary: &Summary, file: &Path, runbook: &Path, view: &View) -> String {
    let shown = file.display().to_string();
    let size = match summary.bytes {
        bytes if bytes < 10 << 10 => format!("{bytes} bytes"),
        bytes if bytes < 10 << 20 => format!("{} KiB", bytes >> 10),
        bytes => format!("{} MiB", bytes >> 20),
    };
    let mut lines = vec![format!("{} {size}, for its owner alone", view.styles.paint(Role::Heading, &visible(&shown)))];
    let mut say = |text: &str| lines.extend(hang("  ", text, 4, view.width));
    for (crd, count, versions) in &summary.records {
        let at = if versions.is_empty() {
            "no version can be listed".into()
        } else {
            format!("at {}", versions.join(" and "))
        };
        say(&visible(&format!("{crd}: {} {at}", plural(*count, "record"))));
    }
    for crd in &summary.absent {
        say(&visible(&format!("{crd}: not installed")));
    }
    if summary.unreadable > 0 {
        say(&format!("{} cannot be read at every version; so it says", plural(summary.unreadable, "record")));
    }
    say(&format!(
        "beside them {}, {} by metadata alone, {} without schemas",
        plural(summary.objects, "object"),
        plural(summary.metadata, "object"),
        plural(summary.other_crds, "other CRD"),
    ));
    say(&format!(
        "left out: {} now placeholders (Secrets, environment, arguments, annotations, status texts)",
        plural(summary.replaced, "value"),
    ));
    if !summary.denied.is_empty() {
        say(&format!("not readable, and noted as such: {}", summary.denied.len()));
        for words in summary.denied.iter().take(NAMED) {
            lines.extend(hang("    ", &visible(words), 6, view.width));
        }
        if summary.denied.len() > NAMED {
            lines.push(format!("    and {} more; look for \"denied\" in the file", summary.denied.len() - NAMED));
        }
    }
    let (runbook, file) = (shell_word(&runbook.to_string_lossy()), shell_word(&shown));
    for verb in ["plan", "rehearse"] {
        lines.push(view.styles.paint(Role::Command, &format!("Next: sbx {verb} {runbook} --snapshot {file}")));
    }
    lines.join("\n") + "\n"
}
