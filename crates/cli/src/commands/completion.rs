//! `completion`.

use clap::ValueEnum;

use crate::complete;
use crate::failure::{Failure, Result};
use crate::io::Io;

pub(crate) const EXAMPLES: &str = "Put the script where your shell reads it:
  bash:        echo 'source <(datumctl-compute completion bash)' >> ~/.bashrc
  zsh:         echo 'source <(datumctl-compute completion zsh)' >> ~/.zshrc
  fish:        datumctl-compute completion fish > ~/.config/fish/completions/datumctl-compute.fish
  powershell:  datumctl-compute completion powershell | Out-String | Invoke-Expression";

/// For which shell.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Powershell,
}

pub(crate) fn run(options: &Options, io: Io) -> Result<()> {
    let name = match options.shell {
        Shell::Bash => "bash",
        Shell::Zsh => "zsh",
        Shell::Fish => "fish",
        Shell::Powershell => "powershell",
    };
    let script = complete::script(name).ok_or_else(|| {
        Failure::new("cannot write the script", "the shell is not known").advice("choose another shell")
    })?;
    io.print(&script);
    Ok(())
}
