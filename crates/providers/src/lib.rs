//! What runs instances in a cell: one controller over the cell's instances, and engines that it drives.
//!
//! This crate must never touch what is not a provider's: of an Instance it writes `Programmed`, `Available`, addresses, the observed template hash
//! and its own finalizer. No engine's raw wording reaches a status.
//!
//! Start reading at `spawn`; [`simulated`] is the engine that needs nothing.

pub mod simulated;
