//! The credentials helper: a program that prints a token. What it prints is held in memory as long as this process runs, is never
//! written anywhere, and never shows up in an error.

use std::process::Stdio;
use std::time::Duration;

use secrecy::SecretString;
use tokio::process::Command;
use tokio::sync::Mutex;

use crate::failure::{Exit, Failure};

/// How long the helper may take: it may have to ask a server for a new token.
const PATIENCE: Duration = Duration::from_secs(15);

/// The helper could not give a token.
#[derive(Clone, Debug)]
pub(crate) struct HelperFailed(pub(crate) Failure);

impl std::fmt::Display for HelperFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.what)
    }
}

impl std::error::Error for HelperFailed {}

/// Tokens of a session, asked for when they are needed.
pub(super) struct Tokens {
    helper: String,
    session: Option<String>,
    held: Mutex<Option<SecretString>>,
}

impl Tokens {
    /// Tokens from a helper.
    pub(super) fn new(helper: String, session: Option<String>) -> Self {
        Self { helper, session, held: Mutex::new(None) }
    }

    /// A token, the same for as long as it is good.
    pub(super) async fn get(&self) -> Result<SecretString, HelperFailed> {
        let mut held = self.held.lock().await;
        if let Some(token) = &*held {
            return Ok(token.clone());
        }
        let token = self.ask().await?;
        *held = Some(token.clone());
        Ok(token)
    }

    /// Another token, since the one at hand was refused.
    pub(super) async fn renew(&self) -> Result<SecretString, HelperFailed> {
        let mut held = self.held.lock().await;
        let token = self.ask().await?;
        *held = Some(token.clone());
        Ok(token)
    }

    async fn ask(&self) -> Result<SecretString, HelperFailed> {
        let mut command = Command::new(&self.helper);
        command.args(["auth", "get-token"]);
        if let Some(session) = &self.session {
            command.args(["--session", session]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let output = match tokio::time::timeout(PATIENCE, command.output()).await {
            Err(_) => return Err(silent()),
            Ok(Err(error)) => return Err(cannot_run(&error)),
            Ok(Ok(output)) => output,
        };
        if !output.status.success() {
            // Its complaint is for people; a token goes to stdout only.
            let said = String::from_utf8_lossy(&output.stderr);
            let line =
                said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it does not say why");
            let line: String = line.chars().take(200).collect();
            return Err(says(&line));
        }
        let token = String::from_utf8(output.stdout).unwrap_or_default().trim().to_owned();
        if token.is_empty() {
            return Err(gave_nothing());
        }
        Ok(SecretString::from(token))
    }
}

fn failed(why: String) -> HelperFailed {
    HelperFailed(
        Failure::new("cannot get credentials from datumctl", why)
            .exit(Exit::NotAllowed)
            .other("datumctl login", "sign in again"),
    )
}

pub(super) fn silent() -> HelperFailed {
    failed(format!("the helper did not answer within {} s", PATIENCE.as_secs()))
}

pub(super) fn cannot_run(error: &std::io::Error) -> HelperFailed {
    failed(format!("the helper cannot be run: {}", error.kind()))
}

pub(super) fn says(line: &str) -> HelperFailed {
    failed(format!("the helper says: {line}"))
}

pub(super) fn gave_nothing() -> HelperFailed {
    failed("the helper gave no token".to_owned())
}
