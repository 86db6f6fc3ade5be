//! The library, driven from outside.

#![allow(clippy::disallowed_types, reason = "the tests put a server of their own under the program's client")]

mod apply;
mod cases;
mod cluster;
mod complete;
mod faults;
mod hostile;
mod layers;
mod plan_views;
mod readme;
mod rehearse;
mod run_lines;
mod schema;
mod terminal;
mod touch;
mod usage;
