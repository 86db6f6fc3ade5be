//! The library, driven from outside.

mod cases;
mod complete;
mod hostile;
mod layers;
mod plan_views;
mod run_lines;
mod schema;
mod touch;
mod usage;
