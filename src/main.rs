//! The binary: wire and leave.

fn main() {}
