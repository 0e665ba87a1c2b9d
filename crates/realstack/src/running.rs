//! A stack that is up, as tests use it: its servers, and its processes to stop, start and look at.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::process::{self, Process};
use crate::procfs::Usage;
use crate::server::{Cell, Server};
use crate::state::{Folder, Stack, Versions};

/// A stack that is up, opened from its state folder.
#[derive(Debug)]
pub struct Running {
    folder: Folder,
    stack: Stack,
}

impl Running {
    /// Opens the stack in `dir`. Some of its processes may be stopped; it is up as long as one runs.
    ///
    /// # Errors
    ///
    /// If none is up there.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let not_up = || Error::NotUp { path: dir.to_owned() };
        let folder = Folder::open(dir).ok_or_else(not_up)?;
        let stack = folder.read()?.ok_or_else(not_up)?;
        for process in &stack.processes {
            if process.running(&folder)?.is_some() {
                return Ok(Self { folder, stack });
            }
        }
        Err(not_up())
    }

    /// The management plane's API server.
    pub fn management(&self) -> &Server {
        &self.stack.management
    }

    /// Karmada's API server.
    pub fn hub(&self) -> &Server {
        &self.stack.hub
    }

    /// The cells, by city.
    pub fn cells(&self) -> &BTreeMap<String, Cell> {
        &self.stack.cells
    }

    /// What it is made of.
    pub fn versions(&self) -> &Versions {
        &self.stack.versions
    }

    /// A kubectl of the same version.
    pub fn kubectl(&self) -> &Path {
        &self.stack.kubectl
    }

    /// The state folder.
    pub fn dir(&self) -> &Path {
        self.folder.path()
    }

    /// The log of a process.
    pub fn log(&self, name: &str) -> PathBuf {
        self.folder.log(name)
    }

    /// The names of all processes, in the order in which they start.
    pub fn process_names(&self) -> Vec<String> {
        self.stack.processes.iter().map(|process| process.name.clone()).collect()
    }

    /// Stops a process: asks it to end, and kills it if it does not within a few seconds. It is gone when this returns; one that does not run is
    /// no error.
    ///
    /// # Errors
    ///
    /// If there is no such process, or it cannot be stopped.
    pub async fn stop_process(&self, name: &str) -> Result<(), Error> {
        match self.process(name)?.running(&self.folder)? {
            Some(identity) => process::stop(name, &identity).await,
            None => Ok(()),
        }
    }

    /// Kills a process, which has no time to finish anything. It is gone when this returns.
    ///
    /// # Errors
    ///
    /// As of [`Running::stop_process`].
    pub async fn kill_process(&self, name: &str) -> Result<(), Error> {
        match self.process(name)?.running(&self.folder)? {
            Some(identity) => process::kill(name, &identity).await,
            None => Ok(()),
        }
    }

    /// Starts a process with the command line that it had. It is healthy when this returns; one that runs is no error.
    ///
    /// # Errors
    ///
    /// If there is no such process, or it does not become healthy.
    pub async fn start_process(&self, name: &str) -> Result<(), Error> {
        let process = self.process(name)?;
        match process.running(&self.folder)? {
            Some(identity) => process.healthy(&self.folder, &identity).await,
            None => process.start(&self.folder).await,
        }
    }

    /// What a process takes now.
    ///
    /// # Errors
    ///
    /// If there is no such process, or it does not run.
    pub fn usage(&self, name: &str) -> Result<Usage, Error> {
        let running = self.process(name)?.running(&self.folder)?;
        running
            .and_then(|identity| identity.usage())
            .ok_or_else(|| Error::NotRunning { name: name.to_owned() })
    }

    fn process(&self, name: &str) -> Result<&Process, Error> {
        self.stack.processes.iter().find(|process| process.name == name).ok_or_else(|| {
            Error::UnknownProcess { name: name.to_owned(), known: self.process_names().join(", ") }
        })
    }
}

#[cfg(test)]
mod tests;
