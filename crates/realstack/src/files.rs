//! Files that only their owner may read, and that are there whole or not at all.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;

/// Makes a folder and those above it, readable by their owner alone.
pub(crate) fn create_folder(path: &Path) -> Result<(), Error> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(Error::file("create", path))
}

/// Writes a file that only its owner may read. A reader sees the old content or the new, never a part.
pub(crate) fn write(path: &Path, content: &str) -> Result<(), Error> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)
        .map_err(Error::file("create", &new))?;
    file.write_all(content.as_bytes()).map_err(Error::file("write", &new))?;
    fs::rename(&new, path).map_err(Error::file("write", path))
}

/// Writes a value as JSON, as [`write`] does.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Error::Malformed { path: path.to_owned(), why: error.to_string() })?;
    write(path, &text)
}

/// Reads a value that [`write_json`] wrote; `None` if the file is not there.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::file("read", path)(error)),
    };
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|error| Error::Malformed { path: path.to_owned(), why: error.to_string() })
}

/// Removes a file or a whole folder; it need not be there.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::file("remove", path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_is_written_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        create_folder(&inner).unwrap();
        let file = inner.join("secret");
        write(&file, "one").unwrap();
        write(&file, "two").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&inner).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(&inner).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn absence_is_no_error_and_rubbish_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.json");
        assert_eq!(read_json::<u32>(&file).unwrap(), None);
        remove(&file).unwrap();
        write(&file, "{").unwrap();
        assert!(matches!(read_json::<u32>(&file), Err(Error::Malformed { .. })));
    }
}
