//! Takes the keys of one table: there or missing, of the right type or not.

use std::{collections::BTreeSet, ops::Range, path::Path};

use super::super::{
    Problem,
    document::KINDS,
    spanned::{Field, Named, Table},
};
use crate::suggest::{both, either, nearest};

/// A value and its place in the text.
#[derive(Clone, Debug)]
pub(super) struct Placed<T> {
    pub(super) value: T,
    pub(super) span: Range<usize>,
}

/// One table while its keys are taken.
pub(super) struct Keys<'a> {
    name: &'a str,
    span: Range<usize>,
    /// Keys that an unknown one was probably meant to be: they are not reported as missing too.
    mistyped: Vec<&'static str>,
    pub(super) problems: &'a mut Vec<Problem>,
}

impl<'a> Keys<'a> {
    /// Opens a table: its name for messages, its header's place, its body. Keys that it does not
    /// know are reported with the nearest one it does.
    pub(super) fn open<T>(name: &'a str, table: Placed<Table<T>>, problems: &'a mut Vec<Problem>) -> (T, Self) {
        let mut keys = Self { name, span: table.span, mistyped: Vec::new(), problems };
        for (span, key) in table.value.unknown {
            keys.unknown(span, &key, table.value.keys);
        }
        (table.value.body, keys)
    }

    fn unknown(&mut self, span: Range<usize>, key: &str, known: &'static [&'static str]) {
        let name = self.name;
        let problem = Problem::new(span, format!("unknown key `{key}` in {name}"));
        let is_kind = name == "`[[step]]`" && ["kind", "type"].contains(&key);
        let near = nearest(key, known.iter().copied()).filter(|_| !is_kind);
        self.mistyped.extend(near);
        self.report(if is_kind {
            problem
                .label("the kind of a step is a table of its own")
                .hint(format!("write `[step.KIND]`, where KIND is {}", either(KINDS)))
        } else if near.is_some() {
            problem.did_you_mean(near)
        } else if known.is_empty() {
            problem.label("this table takes no keys")
        } else {
            problem.hint(format!("{name} takes {}", both(known.iter().copied())))
        });
    }

    /// Adds a problem.
    pub(super) fn report(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// A value that may be left out. None also where it has the wrong type, which is reported.
    pub(super) fn optional<T: Named>(&mut self, key: &str, field: Option<Field<T>>) -> Option<Placed<T>> {
        placed(key, field?, self.problems)
    }

    /// A value that must be there.
    pub(super) fn required<T: Named>(&mut self, key: &str, field: Option<Field<T>>) -> Option<Placed<T>> {
        if field.is_none() && !self.mistyped.contains(&key) {
            self.report(Problem::absent(self.span.clone(), format!("{} lacks `{key}`", self.name)));
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

/// A field's value and place; a wrong type is reported.
pub(super) fn placed<T: Named>(key: &str, field: Field<T>, problems: &mut Vec<Problem>) -> Option<Placed<T>> {
    if field.value.is_none() {
        let problem = Problem::new(field.span.clone(), format!("`{key}` must be {}", T::NAME));
        problems.push(match key {
            "step" => problem.hint("write `[[step]]`, once for each step"),
            "references" => problem.hint("write `[[upgrade.references]]`, once for each field"),
            _ => problem,
        });
    }
    Some(Placed { value: field.value?, span: field.span })
}

/// A path that leads somewhere; one that does not is reported.
pub(super) fn exists(written: &Placed<String>, full: &Path, problems: &mut Vec<Problem>) -> bool {
    let Err(error) = full.metadata() else { return true };
    problems.push(
        Problem::new(written.span.clone(), format!("cannot read `{}`: {error}", full.display()))
            .hint("paths in a runbook are relative to the runbook"),
    );
    false
}
