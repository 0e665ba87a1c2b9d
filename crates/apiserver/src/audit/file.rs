//! The audit log as a file of JSON lines.
//!
//! Guarantees: whoever records never waits: events go through a bounded buffer to a thread that writes them, and when it is full
//! they are lost, counted, and an event in their place says how many. The files are readable by
//! their owner alone; a line is whole, or the last of a crash. What has been recorded is written when the sink is dropped.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;

use jiff::Timestamp;

use super::{Event, Sink};

/// Events that wait for the writer: a second of the busiest server, at about 1 KiB each.
const BUFFER: usize = 16 * 1024;

/// When a log file is put aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// A file is put aside before it would be larger than this.
    pub bytes: u64,
    /// So many are kept beside the present one, as `<name>.1` (the newest) and up.
    pub keep: u32,
}

impl Default for Rotation {
    /// 100 MiB as in Kubernetes, about 100,000 requests; four more are kept: 500 MiB in all.
    fn default() -> Self {
        Self { bytes: 100 << 20, keep: 4 }
    }
}

/// The log cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("the audit log {} cannot be opened", path.display())]
pub struct FileError {
    path: PathBuf,
    #[source]
    source: std::io::Error,
}

/// Writes events to a file.
#[derive(Debug)]
pub struct FileSink {
    /// Taken when the sink is dropped.
    sender: Option<SyncSender<Event>>,
    lost: Arc<AtomicU64>,
    writer: Option<JoinHandle<()>>,
}

impl FileSink {
    /// Appends to the file at `path`, which is made if there is none.
    ///
    /// # Errors
    /// The file cannot be opened for writing.
    pub fn open(path: &Path, rotation: Rotation) -> Result<Self, FileError> {
        Self::open_with(path, rotation, BUFFER)
    }

    pub(super) fn open_with(path: &Path, rotation: Rotation, buffer: usize) -> Result<Self, FileError> {
        let failed = |source| FileError { path: path.to_owned(), source };
        let log = Log::open(path, rotation).map_err(failed)?;
        let (sender, receiver) = sync_channel(buffer);
        let lost = Arc::new(AtomicU64::new(0));
        let writer = Writer { log, lost: lost.clone(), last: Timestamp::UNIX_EPOCH, failing: false };
        let writer =
            std::thread::Builder::new().name("audit".to_owned()).spawn(move || writer.run(&receiver));
        Ok(Self { sender: Some(sender), lost, writer: Some(writer.map_err(failed)?) })
    }
}

impl Sink for FileSink {
    fn record(&self, event: Event) {
        if let Some(sender) = &self.sender
            && sender.try_send(event).is_err()
        {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

struct Writer {
    log: Log,
    lost: Arc<AtomicU64>,
    /// The time of the last event.
    last: Timestamp,
    /// So that a full disk is told once, and not for each event.
    failing: bool,
}

impl Writer {
    fn run(mut self, events: &Receiver<Event>) {
        loop {
            let event = match events.try_recv() {
                Ok(event) => event,
                // Nothing to do for the moment: what there is goes out.
                Err(TryRecvError::Empty) => {
                    self.write_out();
                    match events.recv() {
                        Ok(event) => event,
                        Err(_) => return self.write_out(),
                    }
                }
                Err(TryRecvError::Disconnected) => return self.write_out(),
            };
            self.last = event.at;
            let written = self.tell_losses().and_then(|()| self.log.append(&event));
            if written.is_err() {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
            self.noticed(written);
        }
    }

    fn write_out(&mut self) {
        let written = self.tell_losses().and_then(|()| self.log.file.flush());
        self.noticed(written);
    }

    fn tell_losses(&mut self) -> std::io::Result<()> {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost == 0 {
            return Ok(());
        }
        let told = self.log.append(&Event::lost(lost, self.last));
        if told.is_err() {
            self.lost.fetch_add(lost, Ordering::Relaxed);
        }
        told
    }

    fn noticed(&mut self, result: std::io::Result<()>) {
        match result {
            Ok(()) => self.failing = false,
            Err(error) => {
                if !std::mem::replace(&mut self.failing, true) {
                    tracing::error!(%error, path = %self.log.path.display(), "the audit log cannot be written");
                }
            }
        }
    }
}

/// The file, and how large it is.
struct Log {
    path: PathBuf,
    rotation: Rotation,
    file: BufWriter<File>,
    size: u64,
}

fn open(path: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    // It may be there already, with whatever mode.
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    Ok(file)
}

impl Log {
    fn open(path: &Path, rotation: Rotation) -> std::io::Result<Self> {
        let file = open(path)?;
        let size = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), rotation, file: BufWriter::with_capacity(64 << 10, file), size })
    }

    fn append(&mut self, event: &Event) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        let length = line.len() as u64;
        if self.size > 0 && self.size + length > self.rotation.bytes {
            self.rotate()?;
        }
        self.file.write_all(&line)?;
        self.size += length;
        Ok(())
    }

    /// Puts the file aside, and the oldest of those before it away.
    fn rotate(&mut self) -> std::io::Result<()> {
        self.file.flush()?;
        let aside = |number: u32| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        // One that is not there need not be moved: an earlier attempt may have stopped halfway.
        let if_there = |moved: std::io::Result<()>| match moved {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            moved => moved,
        };
        for number in (1..self.rotation.keep).rev() {
            if_there(std::fs::rename(aside(number), aside(number + 1)))?;
        }
        if_there(match self.rotation.keep {
            0 => std::fs::remove_file(&self.path),
            _ => std::fs::rename(&self.path, aside(1)),
        })?;
        *self = Self::open(&self.path, self.rotation)?;
        Ok(())
    }
}
