//! `pitool completions`: the script that makes a shell ask pitool.

use anyhow::Context as _;
use clap_complete::Shell;
use clap_complete::env::Shells;

use super::{Exit, complete, print};

/// Print the script with which a shell completes commands
///
/// Options and their values complete, and the names of tools and of their arguments: the shell asks pitool, which reads
/// the manifests and starts nothing. The script and pitool belong together, so let the shell read it at its start.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  bash:        echo 'source <(pitool completions bash)' >> ~/.bashrc
  zsh:         echo 'source <(pitool completions zsh)' >> ~/.zshrc
  fish:        echo 'pitool completions fish | source' >> ~/.config/fish/config.fish
  elvish:      echo 'eval (pitool completions elvish | slurp)' >> ~/.config/elvish/rc.elv
  powershell:  pitool completions powershell | Out-String | Invoke-Expression")]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let shell = Shells::builtins()
        .completer(&args.shell.to_string())
        .map(|shell| {
            let mut script = Vec::new();
            let written = shell.write_registration(
                complete::VARIABLE,
                "pitool",
                "pitool",
                "pitool",
                &mut script,
            );
            written.map(|()| script)
        });
    let script = shell
        .with_context(|| format!("no completions for {}", args.shell))?
        .context("cannot write the script")?;
    print::text_of(&String::from_utf8_lossy(&script), Exit::Ok)
}
