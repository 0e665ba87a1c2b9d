//! Every decision of the compute service as a pure function of values: what to create, change and delete,
//! what to wait for, and what to say about it.
//!
//! This crate must never do I/O, hold a client, wait, read a clock or a random number, or log: a caller
//! fetches, asks here, and applies. Its only way to the outside is what it returns, and that is data. It
//! depends on `compute-api` and on nothing that could break this rule; a test reads its `Cargo.toml`.
//!
//! # Guarantees
//!
//! What a function returns does not depend on the order of what it is given, is ordered itself, and applying
//! it and asking again yields nothing more to do.
//!
//! Start reading at [`planner`], which turns a deployment into instances; [`deployments`] turns a Workload into
//! deployments. How both travel between planes is in [`federation`], [`writeback`] and [`projection`]; what people
//! see of it all comes from [`instance_conditions`] and [`rollup`]. What may be written at all is in [`admission`].

pub mod admission;
pub mod changes;
pub mod deployments;
pub mod federation;
pub mod image;
pub mod instance_conditions;
pub mod ledger;
pub mod location;
pub mod meta;
pub mod networks;
pub mod news;
pub mod patch;
pub mod planner;
pub mod project;
pub mod projection;
pub mod propagation;
pub mod provider;
pub mod quota;
pub mod reasons;
pub mod referenced_data;
pub mod removal;
pub mod restart;
pub mod revisions;
pub mod rollup;
pub mod scale;
pub mod subnets;
pub mod writeback;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;
