//! The audit log: who did what, when, in which plane, and with what outcome.
//!
//! Each request leaves one [`Event`] when it ends; a watch leaves one when it starts, too. The shape is that of `audit.k8s.io/v1`
//! at level `Metadata`, which tools for Kubernetes read. Health checks without credentials, and what the server
//! does by itself, are not requests of anyone and leave none.
//!
//! Guarantees: no content of any object is in an event, neither from a body nor from an answer nor quoted in
//! an error: of a failure, the code and the reason are told, and its words only where they speak of nothing but names, and
//! never if it is about Secrets. A request never waits for the log: a sink takes the event or counts it as lost.
//!
//! Whoever serves a request adds to its event through its `Trail`.

mod event;
mod file;
mod trail;

#[cfg(test)]
mod tests;

pub use event::{Event, ObjectRef, Outcome, Stage};
pub use file::{FileError, FileSink, Rotation};
pub(crate) use trail::{Streaming, Trail};

/// Where events go. Called on the way of each request, so it must not block.
pub trait Sink: Send + Sync {
    /// Takes an event, or loses it and counts the loss.
    fn record(&self, event: Event);
}
