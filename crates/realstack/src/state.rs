//! The state folder: what is where, what is written down about a stack that is up, and who may work on it.
//!
//! | path | what |
//! | --- | --- |
//! | `stack.json` | the stack, once it is up: versions, servers with their credentials, processes with their command lines |
//! | `run/<process>/` | where a process works, and `process.json`, which process it is |
//! | `logs/` | a log per process, and `<plane>-audit.log` per API server; left by a `down`, for whoever looks for the reason |
//! | `kubeconfigs/` | an administrator's kubeconfig per plane |
//! | `pki/`, `etcd/` | certificates, keys and tokens; the data of all planes |
//! | `lock` | held by the command that is at work |
//!
//! All of it is readable by its owner alone.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::process::Process;
use crate::server::{Cell, Server};
use crate::{Error, files, procfs};

/// The state folder of one stack.
#[derive(Clone, Debug)]
pub(crate) struct Folder(PathBuf);

/// A stack that is up.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Stack {
    pub(crate) versions: Versions,
    pub(crate) management: Server,
    pub(crate) hub: Server,
    /// By city.
    pub(crate) cells: BTreeMap<String, Cell>,
    /// In the order in which they start.
    pub(crate) processes: Vec<Process>,
    /// The kubectl of the same version.
    pub(crate) kubectl: PathBuf,
}

/// What the stack is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// Of kube-apiserver, kube-controller-manager and kubectl: `v1.35.8`.
    pub kubernetes: String,
    /// Of Karmada.
    pub karmada: String,
    /// Of etcd.
    pub etcd: String,
}

/// Holds the folder for one command; lets go when dropped.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "held, not used")] File);

impl Folder {
    /// The folder, made if it is not there.
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        files::create_folder(path)?;
        let folder = Self(path.canonicalize().map_err(Error::file("read", path))?);
        files::create_folder(&folder.0.join("logs"))?;
        files::create_folder(&folder.0.join("run"))?;
        Ok(folder)
    }

    /// The folder, if it is there.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        path.canonicalize().ok().map(Self)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn stack(&self) -> PathBuf {
        self.0.join("stack.json")
    }

    pub(crate) fn work(&self, process: &str) -> PathBuf {
        self.0.join("run").join(process)
    }

    pub(crate) fn record(&self, process: &str) -> PathBuf {
        self.work(process).join("process.json")
    }

    pub(crate) fn log(&self, process: &str) -> PathBuf {
        self.0.join("logs").join(format!("{process}.log"))
    }

    pub(crate) fn kubeconfig(&self, plane: &str) -> PathBuf {
        self.0.join("kubeconfigs").join(format!("{plane}.kubeconfig"))
    }

    pub(crate) fn pki(&self, plane: &str) -> PathBuf {
        self.0.join("pki").join(plane)
    }

    /// Takes the folder for one command.
    pub(crate) fn lock(&self) -> Result<Lock, Error> {
        let path = self.0.join("lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(Error::file("open", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Lock(file)),
            Err(TryLockError::WouldBlock) => Err(Error::Busy { path: self.0.clone() }),
            Err(TryLockError::Error(error)) => Err(Error::file("lock", &path)(error)),
        }
    }

    /// The stack that was last up here, whether its processes still run or not.
    pub(crate) fn read(&self) -> Result<Option<Stack>, Error> {
        files::read_json(&self.stack())
    }

    /// The processes of a stack in this folder that run now, by name, written down or not.
    pub(crate) fn processes(&self) -> Result<Vec<(String, procfs::Identity)>, Error> {
        let mut found = procfs::marked(&self.0)?;
        for entry in fs::read_dir(self.0.join("run")).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            // A record that cannot be read is of no process that was written down whole; its mark still finds it.
            let written = files::read_json::<procfs::Identity>(&self.record(&name)).ok().flatten();
            if let Some(identity) = written.filter(procfs::Identity::runs)
                && !found.iter().any(|(_, one)| *one == identity)
            {
                found.push((name, identity));
            }
        }
        Ok(found)
    }

    /// Removes all but the logs.
    pub(crate) fn clear(&self) -> Result<(), Error> {
        // First what says that a stack is up: whatever comes after may be cut short.
        files::remove(&self.stack())?;
        for name in ["run", "etcd", "pki", "kubeconfigs"] {
            files::remove(&self.0.join(name))?;
        }
        Ok(())
    }

    /// Removes the logs of an earlier stack.
    pub(crate) fn clear_logs(&self) -> Result<(), Error> {
        let logs = self.0.join("logs");
        files::remove(&logs)?;
        files::create_folder(&logs)
    }

    /// Removes the lock, and the folder if nothing is left in it.
    pub(crate) fn discard(&self, lock: Lock) -> Result<(), Error> {
        files::remove(&self.0.join("lock"))?;
        drop(lock);
        // Logs stay, and so does the folder then.
        let _ = fs::remove_dir(&self.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_command_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::create(dir.path()).unwrap();
        let lock = folder.lock().unwrap();
        assert!(matches!(folder.lock(), Err(Error::Busy { .. })));
        folder.discard(lock).unwrap();
        folder.lock().unwrap();
    }

    #[test]
    fn clearing_leaves_logs_alone() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::create(dir.path()).unwrap();
        fs::write(folder.log("etcd"), "why it failed").unwrap();
        fs::write(folder.stack(), "{}").unwrap();
        files::create_folder(&folder.pki("hub")).unwrap();
        folder.clear().unwrap();
        let left: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["logs"]);
        assert!(folder.log("etcd").exists());
        folder.clear_logs().unwrap();
        assert!(!folder.log("etcd").exists());
    }
}
