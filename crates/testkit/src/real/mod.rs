//! The stack on API servers elsewhere, with managers as processes of their own.
//!
//! | plane | is |
//! | --- | --- |
//! | core, and all projects but one | the embedded server of this process, in the topology of Milo |
//! | the first project of a story | the real management API server, under the same path as any project |
//! | hub | Karmada |
//! | cells | API servers of their own, members of that Karmada |
//!
//! Managers reach all of it over TLS and wires that can be cut, each under identities of its own with the rights of its role and no more;
//! so does Karmada its members. The stand-ins for the platform around run in this process.
//!
//! One stack serves many stories, one after another: [`RealStack::clear`] takes away what a story has made.

pub mod audit;
mod balancer;
pub mod foundation;
pub mod install;
pub mod manager;
mod managers;
mod members;
pub mod milo;
pub mod projects;
pub mod proxy;
mod stack;
pub mod stories;
pub mod surroundings;
pub mod way;
mod webhooks;

pub use foundation::Foundation;
pub use stack::RealStack;
