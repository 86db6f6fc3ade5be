//! The library, driven from outside.

mod cases;
mod plan_views;
mod run_lines;
mod touch;
