//! Everything that runs: one JSON value in, JSON values out.

pub mod sandbox;
