//! How a running platform hands out backups: a Unix socket in the data directory. Whoever connects gets a line that says
//! `ok`, or what is wrong, and then the backup.
//!
//! Guarantees: the socket is for the owner of the data directory alone; one backup is taken at a time; a client that does not
//! read is cut off, so that it holds up neither the store nor the end of the platform.

use std::fs::Permissions;
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use compute_apiserver::ApiServer;
use tokio::net::UnixListener;
use tokio::task::JoinSet;

use crate::data_dir::Lock;

/// The line before a backup.
pub(crate) const OK: &str = "ok";
/// How long a client may take to read on.
const PATIENCE: Duration = Duration::from_secs(30);

/// Hands out backups until what it returns is dropped. A platform that cannot do so is no worse otherwise: it says why in its
/// log, and `backup` tells to stop it first.
pub(crate) fn start(lock: &Lock, server: ApiServer) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let path = lock.dir().backup_socket();
    // Left behind by a platform that was killed. Nobody listens there: the lock is ours.
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).and_then(|listener| {
        // The directory keeps others out from the first moment on; this does should its mode be changed.
        std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        Ok(listener)
    });
    match listener {
        Ok(listener) => {
            tasks.spawn(serve(listener, server));
        }
        Err(error) => {
            tracing::warn!(%error, socket = %path.display(), "no backups while the platform runs");
        }
    }
    tasks
}

async fn serve(listener: UnixListener, server: ApiServer) {
    loop {
        let answered = match listener.accept().await {
            Ok((stream, _)) => answer(stream, &server).await,
            Err(error) => Err(error),
        };
        if let Err(error) = answered {
            tracing::warn!(%error, "a backup could not be handed out");
            // An error of the listener itself may be there to stay: no reason to spin.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

async fn answer(stream: tokio::net::UnixStream, server: &ApiServer) -> io::Result<()> {
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let hang_up = HangUp(stream.try_clone()?);
    let started = Arc::new(AtomicBool::new(false));
    let writer = AfterOk { stream, started: started.clone() };
    match server.backup(writer).await {
        Ok((summary, _)) => {
            tracing::info!(planes = summary.planes, objects = summary.objects, "a backup was taken");
            Ok(())
        }
        Err(error) => {
            // Once it has begun there is no way to say it: the backup ends early, which its reader sees.
            if !started.load(Ordering::Acquire) {
                (&hang_up.0).write_all(format!("{}\n", chain(&error)).as_bytes())?;
            }
            Err(io::Error::other(error))
        }
    }
}

/// An error and its causes, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text.replace('\n', " ")
}

/// Ends the connection when it is dropped, also under a thread that is writing to it.
struct HangUp(UnixStream);

impl Drop for HangUp {
    fn drop(&mut self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// Writes `ok` before anything else.
struct AfterOk {
    stream: UnixStream,
    started: Arc<AtomicBool>,
}

impl Write for AfterOk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.started.swap(true, Ordering::AcqRel) {
            self.stream.write_all(format!("{OK}\n").as_bytes())?;
        }
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
