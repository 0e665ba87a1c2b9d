//! `datumctl-compute`. Everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    compute_cli::main()
}
