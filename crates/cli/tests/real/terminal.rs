//! A real terminal (tmux) with the program on its path: what is typed into it, and what it shows.
//!
//! Each terminal is a tmux of its own, with nothing of this machine's settings, and is gone when it is dropped.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{DEADLINE, LOOK_EVERY, Local, PATIENT};

/// The shell's settings: a plain prompt, and exit codes that are not zero.
const SHELL: &str = "PS1='$ '
PROMPT_COMMAND='code=$?; [ $code -eq 0 ] || echo \"(exit code $code)\"'
bind 'set enable-bracketed-paste off'
";

/// A terminal that a test types into and looks at.
pub struct Terminal {
    socket: String,
}

impl Terminal {
    /// Opens one that finds the platform by itself, as on a person's machine.
    pub async fn open(local: &Local, columns: usize, rows: usize) -> Self {
        let home = local.dir.path();
        local.be_found();
        std::fs::write(home.join("shell"), SHELL).unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_datumctl-compute")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        let shell = format!(
            "exec env -i HOME='{home}' PATH='{path}' TERM=xterm-256color LC_ALL=C.UTF-8 \
             DATUMCTL_COMPUTE_REQUEST_TIMEOUT={PATIENT} bash --noprofile --rcfile '{home}/shell' -i",
            home = home.display()
        );
        let terminal = Self { socket: home.join("tmux").display().to_string() };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let home = home.display().to_string();
        terminal.tmux(&["new-session", "-d", "-x", &columns, "-y", &rows, "-c", &home, &shell]);
        terminal.until("a prompt", is_prompt).await;
        terminal
    }

    /// Runs a command to its end, answering what it asks; what the terminal shows of it then.
    pub async fn run(&self, line: &str, answers: &[(&str, &str)]) -> String {
        self.type_line(line).await;
        let mut open: Vec<_> = answers.to_vec();
        loop {
            let shown = self
                .until(line, |text| {
                    is_prompt(text) || open.iter().any(|(question, _)| is_asked(text, question))
                })
                .await;
            let Some(at) = open.iter().position(|(question, _)| is_asked(&shown, question)) else {
                // What was typed is above it; a shell that is slow to start may have left a prompt above that.
                let body = shown.split_once(&format!("$ {line}")).map_or("", |(_, body)| body);
                let body = body.split_once('\n').map_or("", |(_, body)| body);
                let body: Vec<&str> = body.lines().map(str::trim_end).collect();
                let body = &body[..body.len() - 1];
                return body.iter().map(|line| format!("{line}\n")).collect();
            };
            let (_, answer) = open.remove(at);
            self.tmux(&["send-keys", "-l", answer]);
            self.tmux(&["send-keys", "Enter"]);
        }
    }

    /// Answers what is asked; what the terminal shows when the command has ended.
    pub async fn answer(&self, answer: &str) -> String {
        self.tmux(&["send-keys", "-l", answer]);
        self.tmux(&["send-keys", "Enter"]);
        self.until("the end", is_prompt).await
    }

    /// Types a command on an empty terminal.
    pub async fn type_line(&self, line: &str) {
        self.until("a prompt", is_prompt).await;
        self.tmux(&["send-keys", "C-l"]);
        // What is cleared goes into the history, which is looked at, too.
        self.until("an empty terminal", |text| {
            self.tmux(&["clear-history"]);
            text.lines().all(|line| line.trim_end() == "$")
        })
        .await;
        self.tmux(&["send-keys", "-l", line]);
        self.tmux(&["send-keys", "Enter"]);
        // The prompt of before is not taken for the one of after.
        let typed = format!("$ {line}");
        self.until("what was typed", |text| text.lines().any(|line| line.starts_with(&typed))).await;
    }

    /// Waits until the terminal shows something; what it shows then.
    pub async fn until(&self, what: &str, shows: impl Fn(&str) -> bool) -> String {
        let deadline = tokio::time::Instant::now() + DEADLINE;
        loop {
            let shown = self.tmux(&["capture-pane", "-p", "-J", "-S", "-"]);
            let shown = shown.trim_end().to_owned();
            if shows(&shown) {
                return shown;
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "waited in vain for {what}; the terminal shows:\n{shown}"
            );
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// What it shows now, with its colours.
    pub fn picture(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux")
            .args(["-f", "/dev/null", "-S", &self.socket])
            .args(arguments)
            .stdin(Stdio::null())
            .env_remove("TMUX")
            .env("LC_ALL", "C.UTF-8")
            .output()
            .expect("this test needs tmux: `.ci/run` installs it, or apt-get install tmux");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tmux {}: {said}", arguments.join(" "));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-S", &self.socket, "kill-server"]).output();
    }
}

/// Whether the shell waits for a command.
fn is_prompt(text: &str) -> bool {
    text.lines().last().is_some_and(|line| line.trim_end() == "$")
}

/// Whether a question is the last that is shown.
fn is_asked(text: &str, question: &str) -> bool {
    text.lines().rev().find(|line| line.starts_with('?')).is_some_and(|line| line.contains(question))
}
