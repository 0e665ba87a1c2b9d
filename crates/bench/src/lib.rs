//! Measures the platform against its budgets.
//!
//! `cargo xtask bench apiserver` builds and runs this in the release profile. One run measures the embedded API server and,
//! in the same folder and minutes, the disk below it; prints tables; compares the figures that have a limit with it; and
//! writes `docs/benchmarks.md`. What is measured runs as its users run it: `kube` clients in the server's process, and over
//! TLS to a server in another one. Figures are of one machine under one load: compare runs on the same machine, and let
//! nothing else run meanwhile.
//!
//! `cargo xtask bench pipeline` does the same for the way from a Workload to available instances (`pipeline`).
//!
//! Start reading at [`Section`](report::Section); there is a module for each: `disk`, `writes`, `cpu`, `reads`, `watch`, `memory`, `start`,
//! `flood`. `host` has the servers, `child` the processes, `sample` the objects, `load` the loop, `budget` the limits.

pub mod budget;
mod child;
mod cli;
mod cpu;
mod disk;
mod flood;
mod h2;
mod host;
mod load;
pub mod machine;
mod memory;
mod pipeline;
mod process;
mod reads;
mod real;
pub mod report;
mod sample;
mod start;
pub mod stats;
pub mod table;
mod watch;
mod writes;

pub use cli::main;
