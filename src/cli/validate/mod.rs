//! validate
mod pipeline;
mod read;
