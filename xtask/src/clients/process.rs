//! Child processes: their output as it comes, a deadline on every wait, and no process left behind.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// How long the readers may take to see the end of a process that has been killed. Its children may hold the
/// pipes open; they are not waited for.
const AFTER_KILL: Duration = Duration::from_secs(1);

/// What a process wrote and how it ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output {
    /// The command line, for people.
    pub(crate) command: String,
    /// The exit code; none if it was killed.
    pub(crate) code: Option<i32>,
    /// Everything it wrote to standard output.
    pub(crate) stdout: String,
    /// Everything it wrote to standard error.
    pub(crate) stderr: String,
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "$ {}", self.command)?;
        match self.code {
            Some(code) => writeln!(f, "exit code: {code}")?,
            None => writeln!(f, "exit code: none, it was stopped")?,
        }
        write!(f, "stdout:\n{}\nstderr:\n{}", self.stdout.trim_end(), self.stderr.trim_end())
    }
}

enum Line {
    Out(Vec<u8>),
    Err(Vec<u8>),
}

/// A running process. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    lines: Receiver<Line>,
    output: Output,
}

impl Process {
    /// Starts `command` with `stdin` as its whole input.
    pub(crate) fn start(command: &mut Command, shown: String, stdin: &str) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {shown}"))?;
        let (sender, lines) = channel();
        if let Some(out) = child.stdout.take() {
            read(out, sender.clone(), Line::Out);
        }
        if let Some(err) = child.stderr.take() {
            read(err, sender, Line::Err);
        }
        if let Some(mut pipe) = child.stdin.take() {
            // A process that ends without reading its input says why by its exit code.
            let _ = pipe.write_all(stdin.as_bytes());
        }
        Ok(Self { child, lines, output: Output { command: shown, ..Output::default() } })
    }

    /// Waits until `enough` holds for what has been written so far; says whether it does. Ends early with the
    /// process.
    pub(crate) fn wait_until(&mut self, within: Duration, mut enough: impl FnMut(&Output) -> bool) -> bool {
        let deadline = Instant::now() + within;
        loop {
            if enough(&self.output) {
                return true;
            }
            if self.take_line(deadline).is_err() {
                return enough(&self.output);
            }
        }
    }

    /// Waits for the end of the process; kills it if that takes too long.
    pub(crate) fn wait(mut self, within: Duration) -> Result<Output> {
        let deadline = Instant::now() + within;
        let end = loop {
            if let Err(end) = self.take_line(deadline) {
                break end;
            }
        };
        match end {
            RecvTimeoutError::Disconnected => self.output.code = self.child.wait()?.code(),
            RecvTimeoutError::Timeout => self.stop(),
        }
        Ok(std::mem::take(&mut self.output))
    }

    /// Kills the process; gives what it wrote.
    pub(crate) fn kill(mut self) -> Output {
        self.stop();
        std::mem::take(&mut self.output)
    }

    /// What it has written so far.
    pub(crate) fn output(&mut self) -> &Output {
        while self.take_line(Instant::now()).is_ok() {}
        &self.output
    }

    /// Whether it has not ended yet.
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn stop(&mut self) {
        // Fails only if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let deadline = Instant::now() + AFTER_KILL;
        while self.take_line(deadline).is_ok() {}
    }

    fn take_line(&mut self, deadline: Instant) -> Result<(), RecvTimeoutError> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left)? {
            Line::Out(bytes) => self.output.stdout.push_str(&String::from_utf8_lossy(&bytes)),
            Line::Err(bytes) => self.output.stderr.push_str(&String::from_utf8_lossy(&bytes)),
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends what comes from `pipe` line by line, ends with it.
fn read(pipe: impl Read + Send + 'static, sender: Sender<Line>, wrap: fn(Vec<u8>) -> Line) {
    std::thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        loop {
            let mut line = Vec::new();
            match pipe.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if sender.send(wrap(line)).is_err() => return,
                Ok(_) => {}
            }
        }
    });
}
