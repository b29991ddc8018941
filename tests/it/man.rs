//! The manual page holds the whole command line.

use crate::support::Test;

fn help(command: &[&str]) -> String {
    let done = Test::new(command).args(["--help"]).run();
    assert_eq!(done.code, Some(0), "{command:?}");
    done.stdout
}

/// The words behind the two spaces of each line below a heading of a help text.
fn entries(help: &str, heading: &str) -> Vec<String> {
    let below = help.lines().skip_while(|line| *line != heading).skip(1);
    below
        .take_while(|line| line.starts_with("  ") || line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_command_and_option_stands_in_it() {
    let done = Test::new(["man"]).run();
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
    let page = done.stdout.replace("\\-", "-");
    assert!(page.contains(".TH pitool 1"), "{}", &page[..200]);
    let commands = entries(&help(&[]), "Commands:");
    assert!(commands.len() > 10, "{commands:?}");
    for command in commands {
        let section = format!(".SH \"PITOOL {}\"", command.to_uppercase());
        assert!(page.contains(&section), "{section}");
        let help = help(&[&command]);
        let options = help
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix("--"));
        for option in options {
            let name: String = option
                .chars()
                .take_while(|c| c.is_ascii_lowercase() || *c == '-')
                .collect();
            assert!(page.contains(&format!("--{name}")), "{command} --{name}");
        }
    }
}

#[test]
fn every_control_line_is_one_of_roff() {
    let page = Test::new(["man"]).run().stdout;
    let known = [
        ".ie", ".el", ".TH", ".SH", ".SS", ".IP", ".PP", ".TP", ".RS", ".RE", ".br", ".sp", ".nf",
        ".fi", ".ft",
    ];
    for line in page.lines().filter(|line| line.starts_with(['.', '\''])) {
        let request = line.split(' ').next().unwrap();
        assert!(known.contains(&request), "{line}");
    }
}
