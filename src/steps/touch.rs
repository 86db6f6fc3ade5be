//! One write to one object's metadata, by the rules that hold for every touch (design, section 6.6).
//!
//! ```text
//! metadata -> build -> merge patch + uid + resourceVersion
//!    ^                     |- 2xx            Updated, or Unchanged when the resourceVersion stayed
//!    |                     |- 404, 422 uid   Gone (re-created: somebody looks again)
//!    |<-- 409 ------------ |
//!    |<-- 500, 504, path not served, no answer: read back, then again |  held for 120 s
//!          429, 503: as long as the server asks      |
//!                          |- anything else  Failed, never retried
//! ```
//!
//! A merge patch, never a server-side apply: that could re-create a deleted object.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Outcome, Progress, Run, pace::Hold};
use crate::{
    cluster::{ClusterError, Content},
    object::{Object, ObjectRef, Resource},
};

/// Tries against somebody who keeps writing the same object.
const CONFLICTS: u32 = 40;

/// What became of one object.
#[derive(Clone, Debug)]
pub struct Touched {
    /// Which object.
    pub object: ObjectRef,
    /// uid it was touched under.
    pub uid: String,
    /// What happened.
    pub outcome: Outcome,
    /// Gone, but another object has its name now: look again.
    pub recreated: bool,
    /// Its metadata as it was patched; none when it was never read.
    pub before: Option<Object>,
    /// Its metadata afterwards; none when it is gone or the patch failed.
    pub after: Option<Object>,
}

impl Touched {
    /// As a report of progress.
    pub fn progress(&self) -> Progress {
        Progress::Object {
            object: self.object.clone(),
            outcome: self.outcome.clone(),
            resource_version: self.after.as_ref().map(|after| after.resource_version().into()),
        }
    }
}

/// Touches an object whose metadata was just read.
///
/// `build` gets the newest metadata and returns a merge patch, or none when nothing is to do; it
/// is asked again after every re-read. The uid and resourceVersion preconditions are added here.
pub async fn touch<B>(run: &Run<'_>, resource: &Resource, object: Object, build: &B) -> Touched
where
    B: Fn(&Object) -> Option<Value> + Sync,
{
    let touch = Touch::new(run, resource, object.namespace(), object.name(), object.uid());
    touch.write(object, build).await
}

/// Touches an object known by name and uid, after reading its metadata.
pub async fn touch_named<B>(run: &Run<'_>, resource: &Resource, object: &ObjectRef, uid: &str, build: &B) -> Touched
where
    B: Fn(&Object) -> Option<Value> + Sync,
{
    let mut touch = Touch::new(run, resource, object.namespace.as_deref(), &object.name, uid);
    match touch.read().await {
        Ok(metadata) => touch.write(metadata, build).await,
        Err(end) => touch.ended(end),
    }
}

/// What an error asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The object is not there any more.
    Gone,
    /// Another object has its name.
    Recreated,
    /// It changed since it was read.
    Reread,
    /// Nothing was written; the server asks for time.
    Busy,
    /// Nobody knows whether it was written.
    Unknown,
    /// No.
    Refused,
}

impl Verdict {
    pub(super) fn of(error: &ClusterError) -> Self {
        if error.is_gone() {
            Self::Gone
        } else if error.is_unserved() {
            // The path is not served, by this server at this moment: that says nothing of the object.
            Self::Unknown
        } else if error.is_recreated() {
            Self::Recreated
        } else if error.is_conflict() {
            Self::Reread
        } else if error.is_busy() {
            Self::Busy
        } else if error.is_unknown_outcome() {
            Self::Unknown
        } else {
            Self::Refused
        }
    }
}

/// An end without a written object.
enum End {
    Gone,
    Recreated,
    Failed(String),
}

struct Touch<'a> {
    run: &'a Run<'a>,
    resource: &'a Resource,
    object: ObjectRef,
    uid: String,
    hold: Hold,
    before: Option<Object>,
}

impl<'a> Touch<'a> {
    fn new(run: &'a Run<'a>, resource: &'a Resource, namespace: Option<&str>, name: &str, uid: &str) -> Self {
        let object = resource.object(namespace, name);
        Self { run, resource, object, uid: uid.into(), hold: Hold::default(), before: None }
    }

    async fn write<B>(mut self, mut metadata: Object, build: &B) -> Touched
    where
        B: Fn(&Object) -> Option<Value> + Sync,
    {
        let mut conflicts = 0;
        // resourceVersion under which a write may have landed whose answer was lost.
        let mut unanswered: Option<String> = None;
        loop {
            self.before = Some(metadata_of(&metadata));
            let Some(patch) = build(&metadata) else {
                let landed = unanswered.is_some_and(|before| before != metadata.resource_version());
                return self.wrote(if landed { Outcome::Updated } else { Outcome::Unchanged }, &metadata);
            };
            let before = metadata.resource_version().to_owned();
            let patch = preconditioned(patch, &self.uid, &before);
            let answer = {
                let _turn = self.run.pace.turn().await;
                let (namespace, name) = (self.object.namespace.as_deref(), &self.object.name);
                self.run.writer.patch(self.resource, namespace, name, patch).await
            };
            let error = match answer {
                Ok(after) => {
                    self.run.pace.went_well();
                    let same = after.resource_version() == before;
                    return self.wrote(if same { Outcome::Unchanged } else { Outcome::Updated }, &after);
                }
                Err(error) => error,
            };
            match Verdict::of(&error) {
                Verdict::Gone => return self.ended(End::Gone),
                Verdict::Recreated => return self.ended(End::Recreated),
                Verdict::Reread if conflicts == CONFLICTS => {
                    let words = format!("it changed under each of {CONFLICTS} tries: {}", error.words());
                    return self.ended(End::Failed(words));
                }
                Verdict::Reread => {
                    conflicts += 1;
                    // Uneven pauses fall out of step with whoever writes it in a loop.
                    self.clock().sleep(Duration::from_millis(conflicts.into())).await;
                }
                Verdict::Busy if self.hold.wait(&error, self.run).await => continue,
                Verdict::Unknown if self.hold.wait(&error, self.run).await => {
                    unanswered.get_or_insert(before);
                }
                Verdict::Busy | Verdict::Unknown | Verdict::Refused => {
                    return self.ended(End::Failed(Hold::words(&error)));
                }
            }
            metadata = match self.read().await {
                Ok(metadata) => metadata,
                Err(end) => return self.ended(end),
            };
        }
    }

    /// The object's metadata now, held for like a write.
    async fn read(&mut self) -> Result<Object, End> {
        let reader = self.run.writer.reader().patient(Duration::ZERO);
        loop {
            let (namespace, name) = (self.object.namespace.as_deref(), &self.object.name);
            let answer = reader.look_for(self.resource, namespace, name, Content::Metadata).await;
            match answer {
                Ok(Some(object)) if object.uid() == self.uid => return Ok(object),
                Ok(Some(_)) => return Err(End::Recreated),
                Ok(None) => return Err(End::Gone),
                Err(error) if (error.may_heal() || error.is_unserved()) && self.hold.wait(&error, self.run).await => {}
                Err(error) => return Err(End::Failed(Hold::words(&error))),
            }
        }
    }

    fn clock(&self) -> &crate::clock::Clock {
        self.run.writer.reader().clock()
    }

    fn wrote(self, outcome: Outcome, after: &Object) -> Touched {
        let after = Some(metadata_of(after));
        let Self { object, uid, before, .. } = self;
        Touched { object, uid, outcome, recreated: false, before, after }
    }

    fn ended(self, end: End) -> Touched {
        let recreated = matches!(end, End::Recreated);
        let outcome = match end {
            End::Gone | End::Recreated => Outcome::Gone,
            End::Failed(words) => Outcome::Failed(words),
        };
        let Self { object, uid, before, .. } = self;
        Touched { object, uid, outcome, recreated, before, after: None }
    }
}

/// Metadata alone: the answer to a patch of a Secret holds its data, which nobody needs.
fn metadata_of(object: &Object) -> Object {
    let part = |key: &str| object.0.get(key).cloned().unwrap_or_default();
    Object(json!({"apiVersion": part("apiVersion"), "kind": part("kind"), "metadata": part("metadata")}))
}

fn preconditioned(patch: Value, uid: &str, resource_version: &str) -> Value {
    let Value::Object(mut patch) = patch else {
        return json!({"metadata": {"uid": uid, "resourceVersion": resource_version}});
    };
    let metadata = patch.entry("metadata").or_insert_with(|| json!({}));
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("uid".into(), uid.into());
        metadata.insert("resourceVersion".into(), resource_version.into());
    }
    patch.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Cause, Fault, Status};

    fn answer(code: u16, reason: &str, field: Option<&str>) -> ClusterError {
        let causes = field.map(|field| Cause { field: field.into(), message: "field is immutable".into() });
        let status = Status { code, reason: reason.into(), causes: causes.into_iter().collect(), ..Status::default() };
        ClusterError { attempt: "patch Widget default/a".into(), fault: Fault::Status(Box::new(status)) }
    }

    #[test]
    fn every_answer_has_its_verdict() {
        let table = [
            (answer(404, "NotFound", None), Verdict::Gone),
            (answer(404, "", None), Verdict::Unknown),
            (answer(409, "Conflict", None), Verdict::Reread),
            (answer(422, "Invalid", Some("metadata.uid")), Verdict::Recreated),
            (answer(422, "Invalid", Some("spec.size")), Verdict::Refused),
            (answer(400, "BadRequest", None), Verdict::Refused),
            (answer(401, "Unauthorized", None), Verdict::Refused),
            (answer(403, "Forbidden", None), Verdict::Refused),
            (answer(413, "RequestEntityTooLarge", None), Verdict::Refused),
            (answer(429, "TooManyRequests", None), Verdict::Busy),
            (answer(503, "ServiceUnavailable", None), Verdict::Busy),
            (answer(500, "InternalError", None), Verdict::Unknown),
            (answer(504, "Timeout", None), Verdict::Unknown),
        ];
        for (error, wanted) in table {
            assert_eq!(Verdict::of(&error), wanted, "{error}");
        }
        let silence = ClusterError { attempt: String::new(), fault: Fault::Transport("reset".into()) };
        assert_eq!(Verdict::of(&silence), Verdict::Unknown);
    }

    #[test]
    fn every_patch_carries_both_preconditions() {
        let wanted = json!({"metadata": {"uid": "u", "resourceVersion": "7"}});
        assert_eq!(preconditioned(json!({}), "u", "7"), wanted);
        assert_eq!(preconditioned(Value::Null, "u", "7"), wanted);
        let patch = json!({"metadata": {"annotations": {"a": null}, "resourceVersion": "1"}});
        let wanted = json!({"metadata": {"annotations": {"a": null}, "uid": "u", "resourceVersion": "7"}});
        assert_eq!(preconditioned(patch, "u", "7"), wanted);
    }
}
