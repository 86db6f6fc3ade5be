//! `sbx` takes a Kubernetes API version away without losing a record: it plans the removal, carries
//! it out step by step, proves every stored object, and says before the merge whether the merge will
//! work.
//!
//! # How it flows
//!
//! ```text
//! runbook text -> Runbook -> StepGraph -> observe -> Plan -> render
//!                                                      \--> apply -> events -> render
//! ```
//!
//! # Where to read, in this order
//!
//! | module | what it is |
//! |---|---|
//! | [`runbook`] | text to model; every problem with its place |
//! | [`graph`] | model to order |
//! | [`cluster`] | the only place that names kube: a `Reader` that cannot write, a `Writer` for apply |
//! | [`steps`] | one file a step kind: observe, decide, run |
//! | [`plan`] | the plan: plain data |
//! | [`apply`] | the walk over the steps: lock, journal, approvals, waits |
//! | [`snapshot`] | what the steps look at in one file, secrets left out; and back, into an API server in memory |
//! | [`control_plane`] | a real etcd and kube-apiserver on loopback, started from their binaries |
//! | [`draft`] | a runbook from what the live cluster shows |
//! | [`render`] | data to text |
//! | [`commands`] | one verb a file |
//!
//! Beside them stand pure pieces that several use: [`object`] (identity and lossless JSON), [`crd`],
//! [`fields`] (field ownership), [`diff`], [`image`], [`backup`] (the files), [`files`] (manifests),
//! [`clock`], [`suggest`].
//!
//! # Layers
//!
//! Imports point down: `object` < `runbook` < `graph`, `cluster` < `plan` < `steps` < `apply` <
//! `render` < `commands`, `terminal`. `plan` and `render` never see `cluster`; a step's observe gets a
//! `Reader`, only its run a `Writer`. clap is named in [`cli`] and where completions and usage need it,
//! petgraph in [`graph`], toml in [`runbook`], console in [`terminal`] and the styles; only
//! [`terminal`] prints. A test over the imports keeps it so.
//!
//! # What is not here
//!
//! No state file: whether a step is done is read from the live cluster. No finalizer is ever removed,
//! no CRD or namespace deleted, no Secret's value shown.

pub mod apply;
pub mod backup;
pub mod cli;
pub mod clock;
pub mod cluster;
pub mod commands;
pub mod control_plane;
pub mod crd;
pub mod diff;
pub mod draft;
pub mod embedded;
pub mod error;
pub mod exit_code;
pub mod fields;
pub mod files;
pub mod graph;
pub mod image;
pub mod object;
pub mod plan;
pub mod rehearse;
pub mod render;
pub mod runbook;
pub mod snapshot;
pub mod steps;
pub mod suggest;
pub mod terminal;
