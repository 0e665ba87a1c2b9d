//! `compute-bench`: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    compute_bench::main()
}
