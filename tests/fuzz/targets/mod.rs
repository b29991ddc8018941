//! All that takes bytes from outside, a file each.

mod arguments;
mod command_line;
mod journal;
mod manifest;
mod messages;
mod output;
mod schema;

use crate::harness::{self, Target};

/// Every target; the time of a long run is shared equally.
pub(crate) static TARGETS: &[Target] = &[
    arguments::TARGET,
    command_line::TARGET,
    journal::TARGET,
    manifest::TARGET,
    messages::TARGET,
    output::TARGET,
    schema::TARGET,
];

macro_rules! tests {
    ($($name:ident),*) => {
        $(
            #[test]
            fn $name() {
                harness::run(stringify!($name));
            }
        )*

        #[test]
        fn every_target_has_its_test() {
            let tested = [$(stringify!($name)),*];
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, tested);
        }
    };
}

tests!(
    arguments,
    command_line,
    journal,
    manifest,
    messages,
    output,
    schema
);
