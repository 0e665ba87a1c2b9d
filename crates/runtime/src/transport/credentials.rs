//! Who is calling: the `Authorization` header of each request.
//!
//! A token file is read again when what was read is ten seconds old, and at once after the server has refused it. A
//! file that cannot be read for a while does not stop anything: the last token stays in use.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use compute_api::kube::config::AuthInfo;
use http::HeaderValue;
use parking_lot::Mutex;
use secrecy::ExposeSecret as _;
use tokio::time::Instant;

use super::ConfigError;

/// How old a token may be before its file is looked at again. Files rotate minutes before their token ends.
const TOKEN_AGE: Duration = Duration::from_secs(10);

/// Where the `Authorization` header comes from.
pub(super) enum Credentials {
    /// There is none: the client certificate says it, or nobody asks.
    None,
    /// It never changes.
    Fixed(HeaderValue),
    /// It is in a file that somebody else renews.
    File(TokenFile),
}

/// A file with a token.
pub(super) struct TokenFile {
    path: PathBuf,
    read: Mutex<Read>,
}

struct Read {
    header: HeaderValue,
    at: Instant,
}

impl Credentials {
    pub(super) fn new(auth: &AuthInfo) -> Result<Self, ConfigError> {
        if auth.exec.is_some() || auth.auth_provider.is_some() {
            return Err(ConfigError::Plugin);
        }
        if let Some(path) = &auth.token_file {
            let text = std::fs::read_to_string(path)
                .map_err(|source| ConfigError::TokenFile { path: path.clone(), source })?;
            let read = Read { header: bearer(&text)?, at: Instant::now() };
            return Ok(Self::File(TokenFile { path: path.into(), read: Mutex::new(read) }));
        }
        if let Some(token) = &auth.token {
            return bearer(token.expose_secret()).map(Self::Fixed);
        }
        if let (Some(user), Some(password)) = (&auth.username, &auth.password) {
            let pair = format!("{user}:{}", password.expose_secret());
            let pair = base64::engine::general_purpose::STANDARD.encode(pair);
            return sensitive(&format!("Basic {pair}")).map(Self::Fixed);
        }
        Ok(Self::None)
    }

    /// The header for a request that goes out now.
    pub(super) async fn header(&self) -> Option<HeaderValue> {
        match self {
            Self::None => None,
            Self::Fixed(header) => Some(header.clone()),
            Self::File(file) => {
                let (header, is_old) = {
                    let mut read = file.read.lock();
                    let is_old = read.at.elapsed() >= TOKEN_AGE;
                    if is_old {
                        // Whoever finds it old reads it; the others go on with what there is.
                        read.at = Instant::now();
                    }
                    (read.header.clone(), is_old)
                };
                if is_old { Some(file.reload().await) } else { Some(header) }
            }
        }
    }

    /// The server refused `used`: a newer header, if there is one.
    pub(super) async fn renewed(&self, used: Option<&HeaderValue>) -> Option<HeaderValue> {
        let Self::File(file) = self else { return None };
        let header = file.reload().await;
        (Some(&header) != used).then_some(header)
    }
}

impl TokenFile {
    async fn reload(&self) -> HeaderValue {
        let found = match tokio::fs::read_to_string(&self.path).await {
            Ok(text) => bearer(&text).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let mut read = self.read.lock();
        match found {
            Ok(header) => *read = Read { header, at: Instant::now() },
            Err(error) => {
                tracing::warn!(path = %self.path.display(), error, "token file not read; the last token stays in use");
            }
        }
        read.header.clone()
    }
}

fn bearer(token: &str) -> Result<HeaderValue, ConfigError> {
    let token = token.trim();
    if token.is_empty() {
        return Err(ConfigError::Credentials);
    }
    sensitive(&format!("Bearer {token}"))
}

fn sensitive(text: &str) -> Result<HeaderValue, ConfigError> {
    let mut header = HeaderValue::from_str(text).map_err(|_| ConfigError::Credentials)?;
    header.set_sensitive(true);
    Ok(header)
}
