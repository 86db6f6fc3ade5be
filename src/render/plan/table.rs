//! One row a step: marker, number, id, state, what will happen, the way back.

use super::Page;
use crate::{
    plan::State,
    render::{
        escape::visible,
        styles::{Role, width},
        words,
        wrap::{pad, wrap},
    },
};

/// Lines of one row.
const ROW: usize = 5;

impl Page<'_> {
    /// Marker, number and step; state; what will happen, wrapped; the way back.
    pub(super) fn table(&mut self) {
        let plan = self.plan;
        let longest = |cells: &mut dyn Iterator<Item = String>, head: &str| {
            cells.map(|cell| width(&cell)).max().unwrap_or_default().max(head.len())
        };
        let numbers = longest(&mut plan.steps.iter().map(|step| step.number.to_string()), " #");
        let ids = longest(&mut plan.steps.iter().map(|step| visible(&step.id.0).into_owned()), "STEP");
        let states = longest(&mut plan.steps.iter().map(|step| words::state(&step.state)), "STATE");
        let undos = longest(&mut plan.steps.iter().map(|step| words::undo(&step.undo)), "UNDO");
        let happens = "WHAT WILL HAPPEN";
        let start = 2 + numbers + 1 + ids + 2 + states + 2;
        let room = self.view.width.saturating_sub(start + 2 + undos).max(happens.len());
        let middle = longest(&mut plan.steps.iter().map(words::summary), happens).min(room);
        let head = format!(
            "  {:>numbers$} {}  {}  {}  UNDO",
            "#",
            pad("STEP", ids),
            pad("STATE", states),
            pad(happens, middle)
        );
        self.painted(Role::Quiet, &[head]);
        for step in &plan.steps {
            let undo = words::undo(&step.undo);
            let mut lines = wrap(&words::summary(step), middle);
            if lines.len() > ROW {
                lines.truncate(ROW - 1);
                lines.push("... (whole below)".into());
                self.cut_rows.insert(step.number);
            }
            let mut lines = lines.into_iter().peekable();
            let first = lines.next_if(|line| width(line) <= middle).unwrap_or_default();
            let marker = words::marker(step);
            let role = marker_role(marker);
            let paint = |role, text: &str| self.view.styles.paint(role, text);
            let row = format!(
                "{} {:>numbers$} {}  {}  {}  {}",
                paint(role, &marker.to_string()),
                step.number,
                paint(role, &pad(&visible(&step.id.0), ids)),
                paint(state_role(&step.state), &pad(&words::state(&step.state), states)),
                paint(if words::is_no_return(step) { Role::NoReturn } else { Role::Quiet }, &pad(&first, middle)),
                if undo == "NONE" { paint(Role::NoReturn, &undo) } else { undo },
            );
            self.line(&row);
            for line in lines {
                // A name too long for its column moves to the left before it runs over.
                let indent = start.min(self.view.width.saturating_sub(width(&line)));
                self.line(&format!("{}{line}", " ".repeat(indent)));
            }
        }
    }
}

fn marker_role(marker: char) -> Role {
    match marker {
        '!' => Role::Blocker,
        '=' => Role::Good,
        '+' => Role::Create,
        '-' => Role::Remove,
        '?' => Role::Warning,
        '~' => Role::Change,
        _ => Role::Quiet,
    }
}

fn state_role(state: &State) -> Role {
    match state {
        State::Met | State::Done | State::NotNeeded => Role::Good,
        State::Waiting => Role::Warning,
        State::ToDo => Role::Heading,
        State::After(_) | State::NotSelected => Role::Quiet,
    }
}
