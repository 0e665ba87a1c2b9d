//! What a provider's controller asks of an engine: to run instances, to say how they are, and to let people look inside.
//!
//! # What an engine guarantees
//!
//! - [`ensure`](Engine::ensure) and [`stop`](Engine::stop) may be called again at any time, and go on from what is there, also after a
//!   restart. They answer soon: what takes long (fetching an image, a grace period) goes on by itself and is told of by
//!   [`changes`](Engine::changes) or looked at again after [`Seen::again`].
//! - What it starts it finds again after a restart, and stops only when it is asked to.
//! - What a runtime says in its own words is in [`Trouble::Provisioning`](compute_core::provider::Trouble::Provisioning) and in errors only.

use std::sync::Arc;
use std::time::Duration;

use compute_api::compute::Instance;
use compute_api::k8s::Timestamp;
use compute_core::meta;
use compute_core::provider::Observation;
use compute_runtime::cache::ObjectName;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

/// Tells instances apart, also those of one name that follow each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// Namespace and name.
    pub name: ObjectName,
    /// The uid.
    pub uid: String,
}

impl Id {
    /// The id of an instance.
    pub fn of(instance: &Instance) -> Self {
        Self { name: ObjectName::of(instance), uid: meta::uid(&instance.metadata).to_owned() }
    }
}

/// What an engine sees of an instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// How it is, and where it is reached.
    pub observation: Observation,
    /// When to look again, if nothing is told before. `None`: the engine tells.
    pub again: Option<Duration>,
}

/// How far a stop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Nothing of the instance is left.
    Gone,
    /// It is on its way out.
    Stopping {
        /// When to ask again, if nothing is told before. `None`: the engine tells.
        again: Option<Duration>,
    },
}

/// Why an engine cannot do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It knows no such instance. A retry helps once it has been started.
    #[error("the instance is not known here")]
    NotFound,
    /// The instance does not run. A retry helps once it does.
    #[error("the instance does not run")]
    NotRunning,
    /// The instance has no container of that name. No retry helps.
    #[error("the instance has no container {0:?}")]
    UnknownContainer(String),
    /// The engine does not answer, or not as it should. A retry helps later.
    #[error("the engine is not available")]
    Unavailable(#[source] anyhow::Error),
}

/// The result of asking an engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Which lines of a log are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Of which container. `None`: of the first.
    pub container: Option<String>,
    /// Go on with what comes, until the instance ends.
    pub follow: bool,
    /// Of what is there, at most so many of the newest lines.
    pub tail: Option<usize>,
    /// Nothing that is older.
    pub since: Option<Timestamp>,
}

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// When it was written.
    pub at: Timestamp,
    /// What it says, without the end of the line.
    pub text: String,
}

/// A command to run inside an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// In which container. `None`: in the first.
    pub container: Option<String>,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Whether it gets a terminal.
    pub tty: bool,
}

/// What goes to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Bytes on its standard input.
    Bytes(Vec<u8>),
    /// The size of its terminal.
    Resize {
        /// Columns.
        width: u16,
        /// Lines.
        height: u16,
    },
}

/// What comes from a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Bytes on its standard output.
    Stdout(Vec<u8>),
    /// Bytes on its standard error.
    Stderr(Vec<u8>),
    /// It has ended: the last that comes.
    Exit(i32),
}

/// What an instance uses at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Thousandths of a CPU.
    pub cpu_millis: i64,
    /// Bytes of memory.
    pub memory_bytes: i64,
}

/// Lines of a log as they come.
pub type Logs = BoxStream<'static, Result<LogLine>>;
/// What goes to a command; its end closes the standard input.
pub type Inputs = BoxStream<'static, Input>;
/// What comes from a command.
pub type Outputs = BoxStream<'static, Result<Output>>;

/// Runs instances.
pub trait Engine: Send + Sync + 'static {
    /// A short name in lower case, such as `docker`. It is part of the provider's field manager and finalizer, so it never changes.
    fn name(&self) -> &'static str;

    /// What the engine has to say about itself in every status.
    fn note(&self) -> Option<&'static str> {
        None
    }

    /// Is told once, before anything else, of the instances that this engine has been given before.
    fn resume(&self, instances: &[Arc<Instance>]) {
        let _ = instances;
    }

    /// Sees to it that an instance runs, or is on its way to.
    fn ensure<'a>(&'a self, instance: &'a Instance) -> BoxFuture<'a, Result<Seen>>;

    /// How an instance is, without doing anything about it. `None`: there is nothing of it.
    fn observe<'a>(&'a self, id: &'a Id) -> BoxFuture<'a, Result<Option<Seen>>>;

    /// Stops an instance and cleans up after it. Without the instance, its object is gone and nobody will ask again after [`Stop::Gone`].
    fn stop<'a>(&'a self, id: &'a Id, instance: Option<&'a Instance>) -> BoxFuture<'a, Result<Stop>>;

    /// What there is of instances of that name, from memory.
    fn held(&self, name: &ObjectName) -> Vec<Id>;

    /// First the names of all instances of which there is anything, then each that changes by itself. Never ends.
    fn changes(&self) -> BoxStream<'static, ObjectName>;

    /// The log of an instance.
    fn logs<'a>(&'a self, id: &'a Id, query: &'a LogQuery) -> BoxFuture<'a, Result<Logs>>;

    /// Runs a command inside an instance.
    fn exec<'a>(&'a self, id: &'a Id, command: Command, input: Inputs) -> BoxFuture<'a, Result<Outputs>>;

    /// What an instance uses.
    fn usage<'a>(&'a self, id: &'a Id) -> BoxFuture<'a, Result<Usage>>;
}
