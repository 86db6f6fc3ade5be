//! What went wrong with a request: the attempt, and the server's own words.

use std::{error::Error as StdError, fmt};

use serde_json::Value;

use super::words::without_values;

/// A request that did not succeed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{attempt}: {fault}")]
pub struct ClusterError {
    /// What was attempted on what: `list sandboxes.agents.x-k8s.io/v1beta1`.
    pub attempt: String,
    /// What came back.
    pub fault: Fault,
}

/// Why a request did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The API server answered with an error.
    Status(Box<Status>),
    /// No answer: name resolution, refused, TLS.
    Transport(String),
    /// No answer within this many seconds.
    Timeout(u64),
    /// An answer that could not be read.
    Decode(String),
    /// The kubeconfig does not lead to a cluster.
    Config(String),
}

/// The server's error, as far as it is acted upon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason: `Conflict`; empty for a plain-text answer.
    pub reason: String,
    /// The server's own words, the values it quotes left out.
    pub message: String,
    /// Causes with the field each is about.
    pub causes: Vec<Cause>,
    /// Seconds the server asks to wait.
    pub retry_after: Option<u64>,
    /// Token with which an expired list can go on.
    pub continue_token: Option<String>,
}

/// One cause of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Field path, as the server writes it: `spec.conversion.strategy`.
    pub field: String,
    /// The server's own words.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) if status.reason.is_empty() => write!(f, "{} {}", status.code, status.message),
            Self::Status(status) => write!(f, "{} {}: {}", status.code, status.reason, status.message),
            Self::Transport(text) => write!(f, "no answer: {text}"),
            Self::Timeout(seconds) => write!(f, "no answer for {seconds} s"),
            Self::Decode(text) => write!(f, "the answer could not be read: {text}"),
            Self::Config(text) => f.write_str(text),
        }
    }
}

impl ClusterError {
    /// The server's error, if it answered with one.
    pub fn status(&self) -> Option<&Status> {
        match &self.fault {
            Fault::Status(status) => Some(status),
            _ => None,
        }
    }

    /// HTTP status code; 0 when there was no answer.
    pub fn code(&self) -> u16 {
        self.status().map_or(0, |status| status.code)
    }

    /// 404: the object, or the whole path, is not there.
    pub fn is_not_found(&self) -> bool {
        self.code() == 404
    }

    /// 404 in the API's own words: this object is not there.
    pub fn is_gone(&self) -> bool {
        self.is_not_found() && !self.is_unserved()
    }

    /// 404 in plain text: nobody serves the path, which says nothing of the object.
    pub fn is_unserved(&self) -> bool {
        self.status().is_some_and(|status| status.code == 404 && status.reason.is_empty())
    }

    /// 409: another resourceVersion, or a field conflict.
    pub fn is_conflict(&self) -> bool {
        self.code() == 409
    }

    /// 401 or 403.
    pub fn is_forbidden(&self) -> bool {
        matches!(self.code(), 401 | 403)
    }

    /// 410: a continue token that is too old.
    pub fn is_expired(&self) -> bool {
        self.code() == 410
    }

    /// 422 because the uid differs: the object was deleted and created again (design, fact 1).
    pub fn is_recreated(&self) -> bool {
        self.status()
            .is_some_and(|status| status.code == 422 && status.causes.iter().any(|cause| cause.field == "metadata.uid"))
    }

    /// 429 for ever: the watch cache of the kind cannot start (design, fact 3).
    pub fn is_initializing(&self) -> bool {
        self.status().is_some_and(|status| status.code == 429 && status.message.contains("(re)initializing"))
    }

    /// The server asks to come back later.
    pub fn is_busy(&self) -> bool {
        matches!(self.code(), 429 | 503)
    }

    /// The outcome of a write is unknown: it must be read back before it is tried again.
    pub fn is_unknown_outcome(&self) -> bool {
        matches!(self.code(), 500 | 502 | 504) || self.is_unanswered()
    }

    /// No answer came at all.
    pub fn is_unanswered(&self) -> bool {
        matches!(self.fault, Fault::Transport(_) | Fault::Timeout(_))
    }

    /// It took longer than the server or we had time for: asking for less may help.
    pub fn is_timeout(&self) -> bool {
        self.code() == 504 || matches!(self.fault, Fault::Timeout(_))
    }

    /// A conversion failed: webhook down, certificate, or a version that is no longer there.
    ///
    /// 1.37 says `corrupt object` for a mere webhook outage (design, fact 18); the word invites
    /// deleting healthy data, so it is never passed on without this reading.
    pub fn is_conversion(&self) -> bool {
        const MARKS: [&str; 4] = ["conversion webhook", "convert CR", "corrupt object", "not decodable"];
        self.status().is_some_and(|status| status.code == 500 && MARKS.iter().any(|mark| status.message.contains(mark)))
    }

    /// What should heal by waiting: webhook or certificate rotating, server restarting.
    pub fn may_heal(&self) -> bool {
        self.is_busy() || self.is_unknown_outcome()
    }

    /// The server's own words alone, the values it quotes left out.
    pub fn words(&self) -> String {
        match &self.fault {
            Fault::Status(status) => status.message.clone(),
            fault => fault.to_string(),
        }
    }
}

impl Status {
    /// Keeps code, reason and fields of a refusal, and none of its words: in what form the server quotes a
    /// Secret's data is its own affair. Refusals about rights, conflicts and absence quote none.
    pub(super) fn withhold_words(&mut self) {
        const PLAIN: [u16; 7] = [401, 403, 404, 409, 410, 429, 503];
        if PLAIN.contains(&self.code) {
            return;
        }
        let fields: Vec<&str> =
            self.causes.iter().map(|cause| cause.field.as_str()).filter(|field| !field.is_empty()).collect();
        let about = if fields.is_empty() { String::new() } else { format!(" about {}", fields.join(", ")) };
        self.message =
            format!("refused with {}{about}; the server's words may quote the Secret and are left out", self.code);
        for cause in &mut self.causes {
            cause.message = "refused".into();
        }
    }
}

/// Reads an error body: a Status object, or plain text such as `404 page not found`.
pub(crate) fn read_status(code: u16, body: &[u8], retry_after: Option<u64>) -> Status {
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        let text = String::from_utf8_lossy(body);
        let message = without_values(text.trim()).chars().take(500).collect();
        return Status { code, message, retry_after, ..Status::default() };
    };
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let causes = value.pointer("/details/causes").and_then(Value::as_array);
    Status {
        code,
        reason: text("/reason"),
        message: without_values(&text("/message")),
        causes: causes
            .into_iter()
            .flatten()
            .map(|cause| {
                let text = |key: &str| cause.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
                Cause { field: text("field"), message: without_values(&text("message")) }
            })
            .collect(),
        retry_after: retry_after.or_else(|| value.pointer("/details/retryAfterSeconds").and_then(Value::as_u64)),
        continue_token: value.pointer("/metadata/continue").and_then(Value::as_str).map(Into::into),
    }
}

/// An error with all its sources, each said once: kube's own text hides the cause.
pub(crate) fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        source = error.source();
    }
    text
}
