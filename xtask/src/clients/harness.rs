//! Cases: a name, some kubectl commands, and what must come out of them.
//!
//! A command is written as in a shell (`'…'` quotes, nothing is expanded) and runs in the namespace of its topic.
//! Every expectation that does not hold becomes an error with the command, its exit code and all it wrote.

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow};
use serde_json::Value;

use super::process::{Output, Process};
use super::server::Server;
use super::tools::Kubectl;

/// How long one command may take.
const COMMAND: Duration = Duration::from_secs(60);
/// How long something that happens in the background may take.
const EVENTUALLY: Duration = Duration::from_secs(30);
/// How long a watch that has started may take to show a change.
const SOON: Duration = Duration::from_millis(300);

/// What passed and what failed, over all clients.
#[derive(Debug, Default)]
pub(super) struct Report {
    passed: usize,
    failed: usize,
    commands: usize,
}

impl Report {
    /// Counts and shows a case that passed.
    pub(super) fn pass(&mut self, name: &str) {
        self.passed += 1;
        println!("ok   {name}");
    }

    /// Counts and shows a case that failed.
    pub(super) fn fail(&mut self, name: &str, details: &str) {
        self.failed += 1;
        println!("FAIL {name}");
        for line in details.lines() {
            println!("     {line}");
        }
    }

    /// How many cases passed.
    pub(super) fn passed(&self) -> usize {
        self.passed
    }

    /// How many cases failed.
    pub(super) fn failed(&self) -> usize {
        self.failed
    }

    /// How many kubectl commands ran.
    pub(super) fn commands(&self) -> usize {
        self.commands
    }
}

/// The cases of one topic, in a namespace of their own.
pub(super) struct Topic<'a> {
    name: &'static str,
    session: Session<'a>,
    report: &'a mut Report,
}

impl<'a> Topic<'a> {
    /// Makes the namespace.
    pub(super) fn new(
        name: &'static str,
        kubectl: &'a Kubectl,
        server: &'a Server,
        report: &'a mut Report,
    ) -> Self {
        let session = Session { kubectl, server, namespace: format!("t-{name}"), commands: Cell::new(0) };
        let mut topic = Self { name, session, report };
        topic.case("its namespace is created", |k| {
            let created = format!("namespace/{} created\n", k.namespace());
            k.cmd(&format!("create namespace {}", k.namespace())).ok()?.is(&created)
        });
        topic
    }

    /// Runs one case.
    pub(super) fn case<T>(&mut self, name: &str, body: impl FnOnce(&Session<'_>) -> Result<T>) {
        let name = format!("kubectl {}: {name}", self.name);
        match body(&self.session) {
            Ok(_) => self.report.pass(&name),
            Err(error) => self.report.fail(&name, &format!("{error:#}")),
        }
        self.report.commands += self.session.commands.take();
    }
}

/// Runs kubectl in the namespace of a topic.
pub(super) struct Session<'a> {
    kubectl: &'a Kubectl,
    server: &'a Server,
    namespace: String,
    commands: Cell<usize>,
}

impl Session<'_> {
    /// The namespace of the topic.
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A command, without the `kubectl`.
    pub(super) fn cmd(&self, line: &str) -> Cmd<'_> {
        Cmd { session: self, line: line.to_owned(), stdin: String::new(), env: Vec::new() }
    }

    /// The value of one field of one object.
    pub(super) fn field(&self, object: &str, path: &str) -> Result<String> {
        Ok(self.cmd(&format!("get {object} -o jsonpath='{{{path}}}'")).ok()?.stdout())
    }

    /// Runs `line` again and again until `check` is content; the last complaint is the error.
    pub(super) fn eventually(
        &self,
        line: &str,
        check: impl Fn(Outcome) -> Result<Outcome>,
    ) -> Result<Outcome> {
        let deadline = Instant::now() + EVENTUALLY;
        loop {
            match check(self.cmd(line).run()?) {
                Ok(outcome) => return Ok(outcome),
                Err(error) if Instant::now() >= deadline => {
                    return Err(error.context(format!("still so after {EVENTUALLY:?}")));
                }
                Err(_) => {}
            }
        }
    }
}

/// A command to run.
pub(super) struct Cmd<'a> {
    session: &'a Session<'a>,
    line: String,
    stdin: String,
    env: Vec<(&'static str, String)>,
}

impl Cmd<'_> {
    /// Its input.
    pub(super) fn stdin(mut self, text: impl Into<String>) -> Self {
        self.stdin = text.into();
        self
    }

    /// A variable of its environment.
    pub(super) fn env(mut self, name: &'static str, value: &str) -> Self {
        self.env.push((name, value.to_owned()));
        self
    }

    /// Starts it.
    pub(super) fn start(self) -> Result<Running> {
        let session = self.session;
        session.commands.set(session.commands.get() + 1);
        let mut command = session.kubectl.command(session.server);
        command.arg("--namespace").arg(&session.namespace).args(split(&self.line)?);
        command.envs(self.env);
        let process = Process::start(
            &mut command,
            format!("kubectl -n {} {}", session.namespace, self.line),
            &self.stdin,
        )?;
        Ok(Running(process))
    }

    /// Runs it to its end, however it ends.
    pub(super) fn run(self) -> Result<Outcome> {
        self.start()?.end()
    }

    /// Runs it; it must succeed.
    pub(super) fn ok(self) -> Result<Outcome> {
        self.run()?.exits(0)
    }

    /// Runs it; it must fail with exit code 1.
    pub(super) fn fails(self) -> Result<Outcome> {
        self.run()?.exits(1)
    }
}

/// A command that runs.
pub(super) struct Running(Process);

impl Running {
    /// Waits for a row of its standard output (see [`Outcome::row`]).
    pub(super) fn shows(&mut self, row: &str) -> Result<()> {
        if self.0.wait_until(EVENTUALLY, |output| has_row(&output.stdout, row)) {
            return Ok(());
        }
        Err(failure(self.0.output(), &format!("expected a row like {row:?}")))
    }

    /// Like [`Running::shows`], but gives up soon: for what has to be caused again until it is seen.
    pub(super) fn shows_soon(&mut self, row: &str) -> bool {
        self.0.wait_until(SOON, |output| has_row(&output.stdout, row))
    }

    /// Waits for its end.
    pub(super) fn end(self) -> Result<Outcome> {
        Ok(Outcome(self.0.wait(COMMAND)?))
    }

    /// Stops it.
    pub(super) fn stop(self) -> Outcome {
        Outcome(self.0.kill())
    }
}

/// A command that has ended.
pub(super) struct Outcome(Output);

impl Outcome {
    /// Its standard output.
    pub(super) fn stdout(&self) -> String {
        self.0.stdout.clone()
    }

    /// Its standard error.
    pub(super) fn stderr(&self) -> &str {
        &self.0.stderr
    }

    /// Its standard output as JSON.
    pub(super) fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.0.stdout)
            .map_err(|error| self.complaint(&format!("standard output is no JSON: {error}")))
    }

    /// An error that shows the command.
    pub(super) fn complaint(&self, what: &str) -> Error {
        failure(&self.0, what)
    }

    /// The exit code is this.
    pub(super) fn exits(self, code: i32) -> Result<Self> {
        if self.0.code == Some(code) {
            Ok(self)
        } else {
            Err(self.complaint(&format!("expected exit code {code}")))
        }
    }

    /// Standard output is exactly this.
    pub(super) fn is(self, expected: &str) -> Result<Self> {
        let fact = self.0.stdout == expected;
        self.holds(fact, &format!("expected exactly {expected:?}"))
    }

    /// Standard output contains this.
    pub(super) fn has(self, expected: &str) -> Result<Self> {
        let fact = self.0.stdout.contains(expected);
        self.holds(fact, &format!("expected {expected:?}"))
    }

    /// Standard output does not contain this.
    pub(super) fn lacks(self, unwanted: &str) -> Result<Self> {
        let fact = !self.0.stdout.contains(unwanted);
        self.holds(fact, &format!("expected no {unwanted:?}"))
    }

    /// Standard output has a line with these words, whatever lies between them. `*` stands for anything in a word.
    pub(super) fn row(self, row: &str) -> Result<Self> {
        let fact = has_row(&self.0.stdout, row);
        self.holds(fact, &format!("expected a row like {row:?}"))
    }

    /// Standard error contains this.
    pub(super) fn complains(self, expected: &str) -> Result<Self> {
        let fact = self.0.stderr.contains(expected);
        self.holds(fact, &format!("expected {expected:?} on standard error"))
    }

    /// Standard error is empty.
    pub(super) fn quiet(self) -> Result<Self> {
        let fact = self.0.stderr.is_empty();
        self.holds(fact, "expected nothing on standard error")
    }

    /// A field of the JSON on standard output is this. The path is a JSON pointer; an absent field is null.
    pub(super) fn at(self, pointer: &str, expected: impl Into<Value>) -> Result<Self> {
        let found = self.json()?.pointer(pointer).cloned().unwrap_or_default();
        let expected = expected.into();
        self.holds(found == expected, &format!("expected {expected} at {pointer}, not {found}"))
    }

    /// `fact` is true.
    pub(super) fn holds(self, fact: bool, otherwise: &str) -> Result<Self> {
        if fact { Ok(self) } else { Err(self.complaint(otherwise)) }
    }
}

fn failure(output: &Output, what: &str) -> Error {
    anyhow!("{what}\n{output}")
}

fn has_row(text: &str, row: &str) -> bool {
    let wanted: Vec<&str> = row.split_whitespace().collect();
    text.lines().any(|line| {
        let found: Vec<&str> = line.split_whitespace().collect();
        found.len() == wanted.len() && found.iter().zip(&wanted).all(|(found, wanted)| glob(wanted, found))
    })
}

/// Whether `word` is like `pattern`, in which `*` stands for anything.
fn glob(pattern: &str, word: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == word };
    let Some(mut left) = word.strip_prefix(head) else { return false };
    loop {
        if glob(rest, left) {
            return true;
        }
        let mut chars = left.chars();
        if chars.next().is_none() {
            return false;
        }
        left = chars.as_str();
    }
}

/// The words of a command line; `'…'` keeps spaces.
fn split(line: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if quoted { Err(anyhow!("no closing quote in {line}")) } else { Ok(words) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_split_like_a_shell_does() {
        assert_eq!(split("get cm -l 'a in (b, c)' ''").unwrap(), ["get", "cm", "-l", "a in (b, c)", ""]);
        assert_eq!(split("-o jsonpath='{.a b}'").unwrap(), ["-o", "jsonpath={.a b}"]);
        assert!(split("a 'b").is_err());
    }

    #[test]
    fn rows_match_by_words() {
        let text = "NAME   DATA   AGE\nalpha  1      5s\n";
        assert!(has_row(text, "NAME DATA AGE") && has_row(text, "alpha 1 *") && has_row(text, "al*a 1 *s"));
        assert!(!has_row(text, "alpha 1") && !has_row(text, "alpha 2 *") && !has_row(text, "beta* 1 *"));
    }
}
