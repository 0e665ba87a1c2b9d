//! Files that only their owner may read: keys.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::store::{StorageError, files};

/// What is in a file that only its owner may read; `None` if there is no such file.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, StorageError> {
    let file_error = |source| StorageError::File { path: path.to_owned(), source };
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(file_error(error)),
    };
    if fs::metadata(path).map_err(file_error)?.permissions().mode() & 0o077 != 0 {
        return Err(StorageError::KeyMode(path.to_owned()));
    }
    Ok(Some(bytes))
}

/// The same; if there is no such file, it is made of what `make` returns.
pub(crate) fn read_or_create(path: &Path, make: impl FnOnce() -> Vec<u8>) -> Result<Vec<u8>, StorageError> {
    if let Some(bytes) = read(path)? {
        return Ok(bytes);
    }
    let bytes = make();
    files::write_private(path, &bytes)
        .map_err(|source| StorageError::File { path: path.to_owned(), source })?;
    Ok(bytes)
}
