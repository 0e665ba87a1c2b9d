//! `compute-bench`: see the library.

use std::process::ExitCode;

/// What is measured allocates as what is shipped (`compute-local`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    compute_bench::main()
}
