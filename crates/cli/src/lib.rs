//! `datumctl-compute`: the compute service on the command line, as a plugin of datumctl or by itself.
//!
//! A command fetches objects (`fetch`), turns them into what people want to know (`model`, pure), turns that into text
//! (`render`, pure: width and colour are parameters) and prints it. What is written goes through `change`, which also keeps the
//! history of revisions. `connect` finds the project and its credentials; `words` says reasons in plain words.
//!
//! Guarantees: results go to stdout, everything else to stderr; an error says what failed, where, why and what to do next; no
//! token is kept, printed or put into an error; every request ends in bounded time.
//!
//! Start reading at `args`, then at the command that you want to know about: `commands` has a file per command.

mod args;
mod change;
mod clock;
mod commands;
mod complete;
mod connect;
mod failure;
mod fetch;
mod invocation;
mod io;
mod manifest;
mod model;
mod plugin;
pub mod reference;
mod render;
mod session;
mod usage;
mod words;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use crate::args::Cli;
use crate::failure::Exit;
use crate::invocation::Invocation;
use crate::io::Io;

/// The whole program.
pub fn main() -> ExitCode {
    // A shell asks for candidates; nothing else happens then.
    clap_complete::CompleteEnv::with_factory(Cli::command).var(complete::VARIABLE).complete();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let invocation = Invocation::new(connect::is_plugin(), Vec::new());
            usage::say(&error, &invocation, Io::of_process());
            // Help and version are answers, the rest is wrong usage.
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() };
        }
    };
    commands::run(cli).into()
}
