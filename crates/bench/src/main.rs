//! `compute-bench`: see the library.

use std::process::ExitCode;

/// What is measured allocates as what is shipped (`compute-local`).
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    compute_bench::main()
}
