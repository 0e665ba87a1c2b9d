//! What goes wrong, for people: what failed, where, why, and what to do next. Never a URL, a token or a stack.

mod server;

use std::process::ExitCode;

pub(crate) use server::{Silence, from_kube, plain};

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// Failed.
    Failed = 1,
    /// Wrong usage.
    Usage = 2,
    /// The service is not enabled, or the caller may not.
    NotAllowed = 3,
    /// Not within the time that was given.
    TimedOut = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Something to do next.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Step {
    /// The words of a command of ours, or of another program's if it is not.
    pub(crate) command: String,
    /// Whether the command is one of ours.
    #[serde(skip)]
    pub(crate) is_ours: bool,
    /// What it is good for.
    pub(crate) purpose: String,
}

impl Step {
    /// A command of ours.
    pub(crate) fn new(command: impl Into<String>, purpose: impl Into<String>) -> Self {
        Self { command: command.into(), is_ours: true, purpose: purpose.into() }
    }

    /// A command of another program.
    pub(crate) fn other(command: impl Into<String>, purpose: impl Into<String>) -> Self {
        Self { command: command.into(), is_ours: false, purpose: purpose.into() }
    }
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// How the program ends by it.
    pub(crate) exit: Exit,
    /// What failed, such as `cannot deploy web`. Empty: everything has been said, only the exit code is left.
    pub(crate) what: String,
    /// Why, a line each.
    pub(crate) why: Vec<String>,
    /// What to do next, in a sentence.
    pub(crate) advice: Option<String>,
    /// What to do next, as commands.
    pub(crate) next: Vec<Step>,
}

impl Failure {
    /// Something failed for a reason.
    pub(crate) fn new(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, what: what.into(), why: vec![why.into()], advice: None, next: Vec::new() }
    }

    /// The command was given wrongly.
    pub(crate) fn usage(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, ..Self::new(what, why) }
    }

    /// Everything has been said already.
    pub(crate) fn silent(exit: Exit) -> Self {
        Self { exit, what: String::new(), why: Vec::new(), advice: None, next: Vec::new() }
    }

    /// The same with another exit code.
    #[must_use]
    pub(crate) fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// The same with a sentence of advice.
    #[must_use]
    pub(crate) fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// The same with a command of ours to go on with.
    #[must_use]
    pub(crate) fn next(mut self, command: impl Into<String>, purpose: impl Into<String>) -> Self {
        self.next.push(Step::new(command, purpose));
        self
    }
}

/// What a command comes to.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;
