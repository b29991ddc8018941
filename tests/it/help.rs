//! The help texts: the short ones fit a screen of 80x24, and all of them are reviewed as one reference.

use crate::support::{Test, golden};

fn help(command: &[String], option: &str) -> String {
    let done = Test::new(command).args([option]).env("COLUMNS", "80").run();
    assert_eq!(
        (done.code, done.stderr.as_str()),
        (Some(0), ""),
        "{command:?}"
    );
    done.stdout
}

/// A command and all below it.
fn commands(command: &[String]) -> Vec<Vec<String>> {
    let text = help(command, "-h");
    let below = text.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = below
        .take_while(|line| line.starts_with(' '))
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned));
    let mut all = vec![command.to_vec()];
    for name in names {
        all.extend(commands(&[command, &[name]].concat()));
    }
    all
}

#[test]
fn short_help_fits_a_screen_and_the_reference_is_reviewed() {
    let mut reference = String::new();
    let mut too_long = Vec::new();
    for command in commands(&[]) {
        let words = [vec!["pitool".to_owned()], command.clone()]
            .concat()
            .join(" ");
        let short = help(&command, "-h");
        // The prompt comes after it.
        if short.lines().count() > 23 {
            too_long.push(format!("{words}: {} lines", short.lines().count()));
        }
        assert!(
            short.lines().all(|line| line.chars().count() <= 80),
            "{short}"
        );
        let long = help(&command, "--help");
        for (option, text) in [("-h", short), ("--help", long)] {
            let lines = text.lines().map(|line| format!("{}\n", line.trim_end()));
            reference += &format!("$ {words} {option}\n{}\n", lines.collect::<String>());
        }
    }
    golden("help.txt", &reference);
    assert_eq!(too_long, [""; 0]);
}
