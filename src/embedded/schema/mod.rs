//! Structural schemas: what is pruned, what is defaulted, what is valid.
//!
//! Small enough to be written here: a schema crate knows JSON Schema, not pruning, defaults, list maps or ratcheting,
//! and would bring forty others into the shipped program. Left out: CEL rules and all formats but `date-time`.

mod default;
mod prune;
mod validate;

use serde_json::Value;

pub(super) use default::default;
pub(super) use prune::prune;
pub(super) use validate::validate;

/// Whether unknown fields stay.
fn preserves(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true
}

/// Whether a node is an object of its own, with apiVersion, kind and metadata.
fn embedded(schema: &Value) -> bool {
    schema["x-kubernetes-embedded-resource"] == true
}

fn is_object_metadata(key: &str) -> bool {
    matches!(key, "apiVersion" | "kind" | "metadata")
}
