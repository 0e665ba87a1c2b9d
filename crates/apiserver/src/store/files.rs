//! Files that are there whole or not at all, whenever the machine stops.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Makes what was created, renamed or removed in a folder last.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Makes the entry of a file or folder in its parent last.
pub(super) fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_folder(parent),
        _ => sync_folder(Path::new(".")),
    }
}

/// Makes a folder that only its owner may enter, with the folders above it. One that is there is left as it is.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    sync_parent(path)
}

/// Puts a file that only its owner may read in place.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    // Left behind by a crash, with whatever mode: a fresh file gets ours.
    let _ = fs::remove_file(&new);
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&new)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_parent(path)
}
