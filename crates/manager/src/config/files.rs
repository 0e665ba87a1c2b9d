//! What the configuration is read from.

use std::io;
use std::path::Path;

/// Files that a configuration names.
pub trait Files {
    /// What is in a file.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
}

/// The files of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }
}

impl Files for std::collections::BTreeMap<std::path::PathBuf, Vec<u8>> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}
