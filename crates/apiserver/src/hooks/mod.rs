//! Admission control beyond the rules of a kind: webhooks, and hooks that run in this process.
//!
//! Both are the same to whoever writes an object: one kind of rules says which requests they see, mutating ones run
//! one after another and may change the object, validating ones run all at once and may only refuse, and
//! a failure policy and a timeout say what happens when one of them cannot answer.
//!
//! A plane keeps one [`Chain`], compiled from its webhook configurations and its in-process hooks whenever one of
//! them changes; a request goes through it with [`admit`], or with [`mutate`] and [`validate`] when something
//! (schema validation) belongs in between. The time, uids, namespaces and services come from the caller ([`Context`]).
//!
//! # Which requests
//! Every create, update, patch, apply and delete of an object, each object of a deletecollection, and writes to `status`,
//! `scale` (as `autoscaling/v1` `Scale`) and `finalize`; dry runs too. A write that lost a race is decided anew, and hooks
//! are asked anew. The server's own deletes (garbage collection, contents of a namespace) are shown like anybody's; what
//! it writes to keep its own books is not, nor what a new plane starts with.
//!
//! # Guarantees
//! - An empty chain costs nothing ([`Chain::is_empty`]).
//! - A call ends with its timeout, and all calls together with the caller's deadline; whatever a webhook answers, it
//!   takes bounded memory.
//! - Errors and logs name webhooks and addresses, and never show objects or what a webhook answered. Only a denial's
//!   own message, warnings and audit annotations are passed on.
//! - Webhook configurations are not sent to webhooks, so a broken webhook can always be removed.
//!
//! Start reading at [`admit`]; then `rules`, `selector` and `conditions` (which requests), `configuration` (what
//! users write), `call` and `transport` (the wire).

mod admit;
mod call;
mod chain;
mod client;
mod conditions;
mod configuration;
mod hook;
mod outcome;
mod request;
mod rules;
mod selector;
mod transport;
mod webhook;

#[cfg(test)]
mod tests;

pub use admit::{Admitted, Context, Equivalent, admit, mutate, validate};
pub use chain::{BadConfiguration, Chain};
pub use client::{NoServices, Resolver, Unresolved};
pub use configuration::{Configuration, ConfigurationKind};
pub use hook::{FailurePolicy, Hook, HookError, Policy, Reinvocation, SideEffects};
pub use outcome::{Change, Denial, MutationOutcome, Notes, Outcome, Rejection};
pub use request::{AdmissionRequest, GroupVersionKind, GroupVersionResource, Operation};
pub use rules::{Rule, Rules, Scope};
pub use transport::Transport;
pub use webhook::Webhook;
