//! The version of the store's format, in a file of its own: it is known before the engine opens anything, so that a
//! store of a newer version is refused untouched.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::StorageError;
use super::files;

/// The format that this version writes. Raised with every change that older versions would misread.
pub(super) const FORMAT: u32 = 1;
/// The file's name.
const FILE: &str = "format";

/// Refuses a folder of a newer format. Changes nothing.
pub(super) fn check(folder: &Path) -> Result<(), StorageError> {
    let path = folder.join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(StorageError::File { path, source }),
    };
    match text.trim().parse::<u32>() {
        Ok(found) if found > FORMAT => Err(StorageError::NewerFormat { path: folder.to_owned(), found }),
        Ok(1..) => Ok(()),
        _ => Err(StorageError::Damaged {
            path: folder.to_owned(),
            what: format!("its file {FILE:?} holds no version"),
        }),
    }
}

/// Writes the format down, if that has not been done.
pub(super) fn stamp(folder: &Path) -> Result<(), StorageError> {
    let path = folder.join(FILE);
    if path.exists() {
        return Ok(());
    }
    files::write_private(&path, format!("{FORMAT}\n").as_bytes())
        .map_err(|source| StorageError::File { path, source })
}
