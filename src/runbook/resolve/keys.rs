//! Takes the keys of one table: there or missing, of the right type or not.

use std::{collections::BTreeSet, ops::Range, path::Path};

use super::super::{
    Problem,
    document::KINDS,
    spanned::{Field, Named, Table},
};
use crate::suggest::{either, nearest};

/// A value and its place in the text.
#[derive(Clone, Debug)]
pub(super) struct Placed<T> {
    pub(super) value: T,
    pub(super) span: Range<usize>,
}

/// The keys that a table knows; the others are reported with the nearest known one.
pub(super) fn sift<T>(table: Table<T>, name: &str, problems: &mut Vec<Problem>) -> T {
    for (span, key) in table.unknown {
        let problem = Problem::new(span, format!("unknown key `{key}` in {name}"));
        problems.push(match nearest(&key, table.keys.iter().copied()) {
            Some(near) => problem.did_you_mean(Some(near)),
            None if name == "`[[step]]`" && ["kind", "type"].contains(&key.as_str()) => problem
                .label("the kind of a step is a table of its own")
                .hint(format!("write `[step.KIND]`, where KIND is {}", either(KINDS))),
            None if table.keys.is_empty() => problem.label("this table is empty"),
            None => problem.hint(format!("{name} takes {}", either(table.keys.iter().copied()))),
        });
    }
    table.body
}

/// One table while its keys are taken.
pub(super) struct Keys<'a> {
    name: &'a str,
    span: Range<usize>,
    pub(super) problems: &'a mut Vec<Problem>,
}

impl<'a> Keys<'a> {
    /// The table's name for messages, and the place of its header.
    pub(super) fn new(name: &'a str, span: Range<usize>, problems: &'a mut Vec<Problem>) -> Self {
        Self { name, span, problems }
    }

    /// Adds a problem.
    pub(super) fn report(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// A value that may be left out. None also where it has the wrong type, which is reported.
    pub(super) fn optional<T: Named>(&mut self, key: &str, field: Option<Field<T>>) -> Option<Placed<T>> {
        let field = field?;
        if field.value.is_none() {
            let problem = Problem::new(field.span.clone(), format!("`{key}` must be {}", T::NAME));
            self.report(problem);
        }
        Some(Placed { value: field.value?, span: field.span })
    }

    /// A value that must be there.
    pub(super) fn required<T: Named>(&mut self, key: &str, field: Option<Field<T>>) -> Option<Placed<T>> {
        if field.is_none() {
            self.report(Problem::new(self.span.clone(), format!("{} lacks `{key}`", self.name)));
        }
        self.optional(key, field)
    }

    /// A text that must be there and not be blank.
    pub(super) fn text(&mut self, key: &str, field: Option<Field<String>>) -> Option<Placed<String>> {
        let text = self.required(key, field);
        self.not_blank(key, text)
    }

    /// A text on one line that must be there.
    pub(super) fn line(&mut self, key: &str, field: Option<Field<String>>) -> Option<Placed<String>> {
        let text = self.text(key, field);
        self.one_line(key, text)
    }

    /// A text that may be left out, but not be blank.
    pub(super) fn optional_text(&mut self, key: &str, field: Option<Field<String>>) -> Option<Placed<String>> {
        let text = self.optional(key, field);
        self.not_blank(key, text)
    }

    /// A text on one line that may be left out.
    pub(super) fn optional_line(&mut self, key: &str, field: Option<Field<String>>) -> Option<Placed<String>> {
        let text = self.optional_text(key, field);
        self.one_line(key, text)
    }

    /// A list that must be there and hold something; items of the wrong type are left out.
    pub(super) fn list<T: Named>(&mut self, key: &str, field: Option<Field<Vec<Field<T>>>>) -> Option<Vec<Placed<T>>> {
        let list = self.required(key, field)?;
        if list.value.is_empty() {
            self.report(Problem::new(list.span, format!("`{key}` is empty")));
        }
        Some(self.items(key, list.value))
    }

    /// Texts that must be there.
    pub(super) fn texts(&mut self, key: &str, field: Option<Field<Vec<Field<String>>>>) -> Option<Vec<Placed<String>>> {
        let texts = self.list(key, field)?;
        Some(texts.into_iter().filter_map(|text| self.not_blank(key, Some(text))).collect())
    }

    /// Texts that may be left out.
    pub(super) fn optional_texts(
        &mut self,
        key: &str,
        field: Option<Field<Vec<Field<String>>>>,
    ) -> Vec<Placed<String>> {
        let texts = self.optional(key, field).map(|list| self.items(key, list.value)).unwrap_or_default();
        texts.into_iter().filter_map(|text| self.not_blank(key, Some(text))).collect()
    }

    /// What a text means, if it means something.
    pub(super) fn parsed<T>(
        &mut self,
        text: Option<Placed<String>>,
        meaning: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> Option<T> {
        let text = text?;
        match meaning(&text.value) {
            Ok(value) => Some(value),
            Err(problem) => {
                self.report(Problem { span: text.span, ..problem });
                None
            }
        }
    }

    /// What each text means; one that stands there twice is reported.
    pub(super) fn unique<T>(
        &mut self,
        texts: Vec<Placed<String>>,
        mut meaning: impl FnMut(&str) -> Result<T, Problem>,
    ) -> Vec<T> {
        let mut seen = BTreeSet::new();
        let mut values = Vec::new();
        for text in texts {
            if seen.insert(text.value.clone()) {
                values.extend(self.parsed(Some(text), &mut meaning));
            } else {
                self.report(Problem::new(text.span, format!("`{}` stands here twice", text.value)));
            }
        }
        values
    }

    /// Reports a path that leads nowhere.
    pub(super) fn exists(&mut self, written: &Placed<String>, full: &Path) {
        if let Err(error) = full.metadata() {
            self.report(
                Problem::new(written.span.clone(), format!("cannot read `{}`: {error}", full.display()))
                    .hint("paths in a runbook are relative to the runbook"),
            );
        }
    }

    fn items<T: Named>(&mut self, key: &str, list: Vec<Field<T>>) -> Vec<Placed<T>> {
        let mut items = Vec::new();
        for field in list {
            match field.value {
                Some(value) => items.push(Placed { value, span: field.span }),
                None => self.report(Problem::new(field.span, format!("`{key}` must hold {} at this place", T::NAME))),
            }
        }
        items
    }

    fn not_blank(&mut self, key: &str, text: Option<Placed<String>>) -> Option<Placed<String>> {
        let text = text?;
        if text.value.trim().is_empty() {
            self.report(Problem::new(text.span, format!("`{key}` is empty")));
            return None;
        }
        Some(text)
    }

    fn one_line(&mut self, key: &str, text: Option<Placed<String>>) -> Option<Placed<String>> {
        let text = text?;
        if text.value.contains(char::is_control) {
            self.report(Problem::new(text.span, format!("`{key}` holds a line break or another control character")));
            return None;
        }
        Some(text)
    }
}
