//! Files that only their owner may read: keys.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use crate::store::StorageError;

/// What is in a file that only its owner may read. If there is none, it is made of what `make` returns, whole or not at all:
/// half a key would be worse than none.
pub(crate) fn read_or_create(path: &Path, make: impl FnOnce() -> Vec<u8>) -> Result<Vec<u8>, StorageError> {
    let file_error = |source| StorageError::File { path: path.to_owned(), source };
    match fs::read(path) {
        Ok(bytes) => {
            let mode = fs::metadata(path).map_err(file_error)?.permissions().mode();
            if mode & 0o077 != 0 {
                return Err(StorageError::KeyMode(path.to_owned()));
            }
            Ok(bytes)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let bytes = make();
            let new = path.with_extension("new");
            let _ = fs::remove_file(&new);
            let mut file = fs::OpenOptions::new()
                .create_new(true)
                .write(true)
                .mode(0o600)
                .open(&new)
                .map_err(file_error)?;
            file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(file_error)?;
            fs::rename(&new, path).map_err(file_error)?;
            Ok(bytes)
        }
        Err(error) => Err(file_error(error)),
    }
}
