//! The data directory: one running platform at a time, its kubeconfig, and how to find it.
//!
//! Guarantees: the directory is readable by its owner alone; whoever holds the lock is the one running platform, and
//! the lock goes with its process however that ends; files are replaced whole or not at all.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use etcetera::BaseStrategy as _;
use serde::{Deserialize, Serialize};

/// What a running platform says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Running {
    /// Process id.
    pub(crate) pid: u32,
    /// `https://127.0.0.1:7443`.
    pub(crate) url: String,
    /// The planes, as contexts of the kubeconfig.
    pub(crate) contexts: Vec<String>,
}

/// The directory.
#[derive(Clone, Debug)]
pub(crate) struct DataDir(PathBuf);

/// Held by the running platform.
pub(crate) struct Lock {
    dir: DataDir,
    _file: File,
}

impl DataDir {
    /// The given directory, or the one that the XDG rules name.
    pub(crate) fn find(given: Option<PathBuf>) -> Result<Self> {
        if let Some(dir) = given {
            let absolute = std::path::absolute(&dir)
                .with_context(|| format!("{} is not a usable path", dir.display()))?;
            return Ok(Self(absolute));
        }
        let strategy = etcetera::choose_base_strategy().context("no home directory; pass --data-dir")?;
        Ok(Self(strategy.data_dir().join("compute-local")))
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Where the kubeconfig is.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.0.join("kubeconfig")
    }

    /// Where the planes are kept.
    pub(crate) fn planes(&self) -> PathBuf {
        self.0.join("planes")
    }

    /// Where the running platform hands out backups.
    pub(crate) fn backup_socket(&self) -> PathBuf {
        self.0.join("backup.sock")
    }

    fn running_file(&self) -> PathBuf {
        self.0.join("running.json")
    }

    /// Takes the directory for this process; `None` if another has it.
    pub(crate) fn lock(&self) -> Result<Option<Lock>> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.0)
            .with_context(|| format!("cannot make the data directory {}", self.0.display()))?;
        let path = self.0.join("lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .with_context(|| format!("cannot open {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { dir: self.clone(), _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("cannot lock {}", path.display()))
            }
        }
    }

    /// Whether a platform runs with this directory. What a killed one left behind goes on the way.
    pub(crate) fn is_taken(&self) -> Result<bool> {
        if !self.0.join("lock").exists() {
            return Ok(false);
        }
        Ok(self.lock()?.is_none())
    }

    /// What the running platform says of itself; `None` while it starts or if it never said.
    pub(crate) fn running(&self) -> Option<Running> {
        serde_json::from_slice(&fs::read(self.running_file()).ok()?).ok()
    }

    /// Replaces a file that only its owner may read.
    pub(crate) fn write_private(&self, path: &Path, content: &[u8]) -> Result<()> {
        let new = path.with_extension("new");
        // Left behind by a crash, with whatever mode: a fresh file gets ours.
        let _ = fs::remove_file(&new);
        let mut file = OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&new)
            .with_context(|| format!("cannot write {}", new.display()))?;
        file.write_all(content)
            .and_then(|()| file.sync_all())
            .with_context(|| format!("cannot write {}", new.display()))?;
        fs::rename(&new, path).with_context(|| format!("cannot replace {}", path.display()))
    }
}

impl Lock {
    /// The directory that is taken.
    pub(crate) fn dir(&self) -> &DataDir {
        &self.dir
    }

    /// Tells others that the platform is up.
    pub(crate) fn announce(&self, running: &Running) -> Result<()> {
        let content = serde_json::to_vec_pretty(running).context("cannot describe the running platform")?;
        self.dir.write_private(&self.dir.running_file(), &content)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // What speaks of a process goes with it; the credentials in the kubeconfig are void after it.
        let _ = fs::remove_file(self.dir.running_file());
        let _ = fs::remove_file(self.dir.kubeconfig());
        let _ = fs::remove_file(self.dir.backup_socket());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn one_at_a_time_and_nothing_left() {
        let temp = tempfile::tempdir().unwrap();
        let dir = DataDir::find(Some(temp.path().join("a/b"))).unwrap();
        assert!(!dir.is_taken().unwrap());
        let lock = dir.lock().unwrap().unwrap();
        assert!(dir.is_taken().unwrap() && dir.lock().unwrap().is_none());
        let running = Running { pid: 1, url: "https://x".to_owned(), contexts: vec!["core".to_owned()] };
        lock.announce(&running).unwrap();
        assert_eq!(dir.running(), Some(running));
        dir.write_private(&dir.kubeconfig(), b"x").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(dir.path()), mode(&dir.kubeconfig())), (0o700, 0o600));
        drop(lock);
        assert!(!dir.is_taken().unwrap() && dir.running().is_none() && !dir.kubeconfig().exists());
    }
}
