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

/// What went wrong, before it is said what to do about it: only with that it is a [`Failure`].
#[must_use]
#[derive(Clone, Debug)]
pub(crate) struct Unadvised(Failure);

impl Unadvised {
    /// The same with another exit code.
    pub(crate) fn exit(mut self, exit: Exit) -> Self {
        self.0.exit = exit;
        self
    }

    /// The same for several reasons.
    pub(crate) fn because(mut self, why: Vec<String>) -> Self {
        self.0.why = why;
        self
    }

    /// With a sentence of advice.
    pub(crate) fn advice(self, advice: impl Into<String>) -> Failure {
        self.0.advice(advice)
    }

    /// With a command of ours to go on with.
    pub(crate) fn next(self, command: impl Into<String>, purpose: impl Into<String>) -> Failure {
        self.0.next(command, purpose)
    }

    /// With a command of another program to go on with.
    pub(crate) fn other(self, command: impl Into<String>, purpose: impl Into<String>) -> Failure {
        self.0.other(command, purpose)
    }
}

impl Failure {
    /// Something failed for a reason.
    #[expect(clippy::new_ret_no_self, reason = "a failure says what to do next, which has to follow")]
    pub(crate) fn new(what: impl Into<String>, why: impl Into<String>) -> Unadvised {
        Unadvised(Self { what: what.into(), why: vec![why.into()], ..Self::silent(Exit::Failed) })
    }

    /// The command was given wrongly.
    pub(crate) fn usage(what: impl Into<String>, why: impl Into<String>) -> Unadvised {
        Self::new(what, why).exit(Exit::Usage)
    }

    /// Everything has been said already.
    pub(crate) fn silent(exit: Exit) -> Self {
        Self { exit, what: String::new(), why: Vec::new(), advice: None, next: Vec::new() }
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

    /// The same with a command of another program to go on with.
    #[must_use]
    pub(crate) fn other(mut self, command: impl Into<String>, purpose: impl Into<String>) -> Self {
        self.next.push(Step::other(command, purpose));
        self
    }
}

/// What a command comes to.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;
