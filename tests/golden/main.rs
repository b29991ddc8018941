//! Expected outputs beside their inputs, rewritten by `PITOOL_UPDATE_GOLDEN=1 cargo test --test golden`.

mod format;
