//! validate
mod pipeline;
