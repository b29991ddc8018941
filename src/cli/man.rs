//! `pitool man`: the manual page, all commands in it.

use std::io;

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use super::{Cli, Exit, print};

/// Print the manual page, with all commands
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pitool man | man -l -                                     read it
  pitool man > ~/.local/share/man/man1/pitool.1             let `man pitool` find it")]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run() -> anyhow::Result<Exit> {
    print::text_of(&page(&Cli::command())?, Exit::Ok)
}

/// The page in roff: what holds for all commands, then a section per command.
fn page(command: &Command) -> io::Result<String> {
    let man = Man::new(command.clone()).manual("User commands");
    let mut page = rendered(|page| {
        man.render_title(page)?;
        man.render_name_section(page)?;
        man.render_synopsis_section(page)?;
        man.render_description_section(page)?;
        man.render_options_section(page)
    })?;
    for subcommand in command.get_subcommands() {
        page += &sections(subcommand, "pitool")?;
    }
    Ok(page)
}

/// A command as a section of its own, and after it those of its subcommands. What holds for all is not told again:
/// a command that was not built with its parent does not have it.
fn sections(command: &Command, parent: &str) -> io::Result<String> {
    let name = format!("{parent} {}", command.get_name());
    let alone = command.clone().bin_name(&name).disable_help_flag(true);
    let has_arguments = alone.get_arguments().next().is_some();
    let man = Man::new(alone);
    let parts = rendered(|page| {
        man.render_synopsis_section(page)?;
        man.render_description_section(page)?;
        if has_arguments {
            man.render_options_section(page)?;
        }
        if command.get_after_help().is_some() || command.get_after_long_help().is_some() {
            man.render_extra_section(page)?;
        }
        Ok(())
    })?;
    // The parts are those of a command, not of the page.
    let parts = parts
        .replace(".SH EXTRA", ".SH NOTES")
        .replace(".SH ", ".SS ");
    let mut section = format!(".SH \"{}\"\n{parts}", name.to_uppercase());
    for subcommand in command.get_subcommands() {
        section += &sections(subcommand, &name)?;
    }
    Ok(section)
}

fn rendered(render: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> io::Result<String> {
    let mut page = Vec::new();
    render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
