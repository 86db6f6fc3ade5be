//! The library, driven from outside.

mod plan_views;
mod run_lines;
mod touch;
