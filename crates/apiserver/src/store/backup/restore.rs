//! A backup becomes a store again.
//!
//! The store is made in a folder beside its place, under a name that nothing reads, and gets its own name when it is
//! whole and on disk. A crash leaves at most that folder, which the next restore removes.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::file::{BackupReader, Record};
use super::{BackupError, BackupSummary};
use crate::clock::Clock;
use crate::store::disk::OBJECTS;
use crate::store::engine::Engine;
use crate::store::seal::{KEY_FILE, Key, Sealer};
use crate::store::value::Stored;
use crate::store::{StorageError, files, format, key, life};

/// Records that are handed to the engine together.
const BATCH_BYTES: usize = 1 << 20;

/// Makes a store of a backup, in a folder that is empty or not there yet. `key` names the key file of the store that the
/// backup was made from; it can be left out if the backup holds no Secrets, and the store gets a new key then. Nothing else
/// may use the folder meanwhile.
///
/// Whatever clients remember of the time before is told to be too old: revisions go on from `clock`, in microseconds, which
/// is above all that were ever given out as long as the clock is right.
pub fn restore<R: Read>(
    folder: &Path,
    key: Option<&Path>,
    clock: &dyn Clock,
    reader: R,
) -> Result<BackupSummary, BackupError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| BackupError::Storage(StorageError::File { path, source })
    };
    if !is_empty(folder).map_err(at(folder))? {
        return Err(BackupError::NotEmpty(folder.to_owned()));
    }
    let new = beside(folder);
    remove(&new).map_err(at(&new))?;
    let made = make(&new, key, clock, reader).and_then(|summary| {
        fs::rename(&new, folder).map_err(at(folder))?;
        files::sync_parent(folder).map_err(at(folder))?;
        Ok(summary)
    });
    if made.is_err() {
        // What is left says nothing and is not read; the error that matters is the first one.
        let _ = remove(&new);
    }
    made
}

fn is_empty(folder: &Path) -> io::Result<bool> {
    match fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Where the store is made.
fn beside(folder: &Path) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(".restoring");
    folder.with_file_name(name)
}

fn make<R: Read>(
    folder: &Path,
    key: Option<&Path>,
    clock: &dyn Clock,
    reader: R,
) -> Result<BackupSummary, BackupError> {
    let file_error = |source| StorageError::File { path: folder.to_owned(), source };
    let engine_error = |error| BackupError::Storage(StorageError::Engine(error));
    let mut from = BackupReader::start(reader)?;
    let keys = Keys::find(key, from.header().key)?;

    files::make_folder(folder).map_err(file_error)?;
    format::stamp(folder)?;
    let objects = folder.join(OBJECTS);
    let engine = Engine::open(&objects).map_err(engine_error)?;
    let mut checker = Checker { revision: from.header().revision, keys: &keys, planes: BTreeSet::new() };
    let mut batch = engine.unsynced_batch();
    let mut size = 0;
    while let Some(record) = from.next()? {
        checker.check(&record)?;
        size += record.key.len() + record.value.len();
        batch.insert(record.key, record.value);
        if size >= BATCH_BYTES {
            std::mem::replace(&mut batch, engine.unsynced_batch()).commit().map_err(engine_error)?;
            size = 0;
        }
    }
    let revision = life::after_restore(from.header().revision, clock.now());
    batch.insert(key::REVISION, revision.to_be_bytes());
    batch.commit().map_err(engine_error)?;
    engine.sync().map_err(engine_error)?;
    drop(engine);

    let key_file = folder.join(KEY_FILE);
    keys.key(&key_file)?.write(&key_file)?;
    files::sync_folder(folder).map_err(file_error)?;
    Ok(from.summary())
}

/// The key that is at hand.
enum Keys {
    /// There is none.
    None,
    /// It is the one of the backup.
    Fits(Key, Sealer),
    /// It is another one.
    Other(PathBuf),
}

impl Keys {
    fn find(path: Option<&Path>, wanted: [u8; 32]) -> Result<Self, BackupError> {
        let Some(path) = path else { return Ok(Self::None) };
        let Some(key) = Key::read(path)? else {
            let source = io::ErrorKind::NotFound.into();
            return Err(StorageError::File { path: path.to_owned(), source }.into());
        };
        if key.fingerprint() != wanted {
            return Ok(Self::Other(path.to_owned()));
        }
        let sealer = Sealer::new(&key);
        Ok(Self::Fits(key, sealer))
    }

    fn sealer(&self) -> Result<&Sealer, BackupError> {
        match self {
            Self::None => Err(BackupError::KeyNeeded),
            Self::Other(path) => Err(BackupError::OtherKey(path.clone())),
            Self::Fits(_, sealer) => Ok(sealer),
        }
    }

    /// The key of the new store. If another than the backup's is at hand, nothing was sealed with either.
    fn key(&self, path: &Path) -> Result<Key, BackupError> {
        match self {
            Self::Fits(key, _) => Ok(key.clone()),
            Self::None | Self::Other(_) => Ok(Key::generate(path)?),
        }
    }
}

/// Looks at each record as the store would when it is opened: what is put in place can be read.
struct Checker<'a> {
    revision: u64,
    keys: &'a Keys,
    planes: BTreeSet<String>,
}

impl Checker<'_> {
    fn check(&mut self, record: &Record) -> Result<(), BackupError> {
        if let Some(plane) = key::plane_name(&record.key) {
            self.planes.insert(plane.to_owned());
            return Ok(());
        }
        let place = key::decode(&record.key).ok_or(BackupError::Altered)?;
        let stored = Stored::parse(&record.value).ok_or(BackupError::Altered)?;
        if !self.planes.contains(&place.plane) || stored.revision() > Some(self.revision) {
            return Err(BackupError::Altered);
        }
        if let Stored::Sealed(_, sealed) = stored {
            self.keys.sealer()?.open(&record.key, sealed).map_err(|_| BackupError::Altered)?;
        }
        Ok(())
    }
}
