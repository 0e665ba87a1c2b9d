//! Client certificates in files that somebody else renews.
//!
//! A connection is who it was when it was opened, and API servers refuse its requests once that certificate has ended. So the files are looked
//! at when the last look is ten seconds old, and at once after the server has refused a request; once they hold another pair that can be
//! used, connections of the one before take no more requests. Files that cannot be read, or do not belong together because just one of
//! them is written yet, change nothing.

use std::path::PathBuf;
use std::time::Duration;

use compute_api::kube::config::AuthInfo;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

/// How old a look may be. Files are renewed hours before their certificate ends.
const LOOK_AGE: Duration = Duration::from_secs(10);

/// The files of a certificate and its key.
pub(super) struct CertificateFiles {
    paths: Vec<PathBuf>,
    seen: Mutex<Seen>,
}

struct Seen {
    /// Of what connections show.
    digest: Option<[u8; 32]>,
    at: Instant,
}

impl CertificateFiles {
    /// Those of a configuration; none if nothing of it is in files.
    pub(super) fn of(auth: &AuthInfo) -> Option<Self> {
        // What is given as data counts more than a file.
        let certificate = auth.client_certificate.as_ref().filter(|_| auth.client_certificate_data.is_none());
        let key = auth.client_key.as_ref().filter(|_| auth.client_key_data.is_none());
        let paths: Vec<PathBuf> = [certificate, key].into_iter().flatten().map(PathBuf::from).collect();
        if paths.is_empty() {
            return None;
        }
        let digest = digest(paths.iter().map(std::fs::read)).ok();
        Some(Self { paths, seen: Mutex::new(Seen { digest, at: Instant::now() }) })
    }

    /// Whether there is something new in them that `is_usable` likes. Says so once. Looks `at_once`, or else only if the last look is old.
    pub(super) async fn has_new(&self, at_once: bool, is_usable: impl FnOnce() -> bool) -> bool {
        {
            let mut seen = self.seen.lock();
            if !at_once && seen.at.elapsed() < LOOK_AGE {
                return false;
            }
            // Whoever finds it old looks; the others go on with what there is.
            seen.at = Instant::now();
        }
        let mut contents = Vec::with_capacity(self.paths.len());
        for path in &self.paths {
            contents.push(tokio::fs::read(path).await);
        }
        let found = match digest(contents) {
            Ok(found) => Some(found),
            Err(error) => {
                tracing::warn!(%error, "client certificate not read; the last one stays in use");
                return false;
            }
        };
        if self.seen.lock().digest == found {
            return false;
        }
        if !is_usable() {
            tracing::warn!(
                "the new client certificate and its key cannot be used; the last one stays in use"
            );
            return false;
        }
        let mut seen = self.seen.lock();
        std::mem::replace(&mut seen.digest, found) != found
    }
}

fn digest(contents: impl IntoIterator<Item = std::io::Result<Vec<u8>>>) -> std::io::Result<[u8; 32]> {
    let mut digest = Sha256::new();
    for content in contents {
        let content = content?;
        digest.update(content.len().to_le_bytes());
        digest.update(content);
    }
    Ok(digest.finalize().into())
}
