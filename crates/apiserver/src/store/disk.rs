//! The durable form of the store: a folder with the engine's files, written in batches, each of which is on disk before it
//! is answered.
//!
//! Guarantees: a batch is there after a crash whole or not at all; what [`Disk::write`] has returned `Ok` for is there;
//! values of Secrets are encrypted, and bound to their key, so that one cannot be passed off as another. A store of a
//! newer format is refused, not guessed at.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bytes::Bytes;

use super::engine::{Engine, View};
use super::format::{self, FORMAT};
use super::key::{self, StoreKey};
use super::seal::{self, Fingerprint, Key, Sealer};
use super::value::{self, Stored};
use super::{GroupResource, ObjectKey, files};

/// The engine's part of the folder.
pub(super) const OBJECTS: &str = "objects";

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// A file or folder is not accessible.
    #[error("cannot use {path}")]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The key file can be read by others.
    #[error("{0} must be readable by its owner alone (mode 0600)")]
    KeyMode(PathBuf),
    /// The key file is not a key.
    #[error("{0} must hold exactly 32 bytes")]
    KeySize(PathBuf),
    /// The key file holds something else.
    #[error("{0} does not hold a key that this version can use")]
    BadKey(PathBuf),
    /// The key file is gone.
    #[error("{0} is missing: put it back, for without it the Secrets in the store cannot be read")]
    KeyMissing(PathBuf),
    /// The engine failed.
    #[error("the storage engine failed")]
    Engine(#[source] fjall::Error),
    /// The store was written by a newer version.
    #[error(
        "the store in {path} has format {found}, and this version reads formats up to {FORMAT}; nothing was changed: \
         use the version that wrote it, or a newer one"
    )]
    NewerFormat {
        /// Where.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// What is on disk makes no sense.
    #[error("the store in {path} is damaged: {what}")]
    Damaged {
        /// Where.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

/// One change on disk.
#[derive(Debug)]
pub(super) enum Record<'a> {
    /// An object; `ready` is its value if it need not be sealed and is made already.
    Put {
        plane: &'a str,
        resource: &'a GroupResource,
        key: &'a ObjectKey,
        revision: u64,
        bytes: &'a [u8],
        ready: Option<&'a Bytes>,
    },
    /// An object is gone; `of_template` if the plane's template has one of that key.
    Remove { plane: &'a str, resource: &'a GroupResource, key: &'a ObjectKey, of_template: bool },
    /// A plane is new.
    CreatePlane(&'a str),
    /// A plane is gone with everything in it.
    DropPlane(&'a str),
}

/// An object as it was found on disk; `None` stands for one of the template that the plane has removed.
pub type Found = (ObjectKey, Option<(u64, Bytes)>);

/// Everything that was found on disk.
#[derive(Debug, Default)]
pub(super) struct Recovered {
    pub(super) revision: u64,
    pub(super) planes: BTreeMap<String, BTreeMap<GroupResource, Vec<Found>>>,
}

/// Makes writes fail on purpose, so that what follows can be tested. Never set outside tests.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults(Arc<AtomicU8>);

/// How a write fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Fault {
    /// Nothing reaches the disk, as when that is full.
    Before = 1,
    /// It is on the disk, but nobody can know: the sync failed.
    After = 2,
}

impl Faults {
    #[cfg(test)]
    pub(super) fn set(&self, fault: Option<Fault>) {
        self.0.store(fault.map_or(0, |fault| fault as u8), Ordering::SeqCst);
    }

    fn strikes(&self, fault: Fault) -> Result<(), StorageError> {
        if self.0.load(Ordering::SeqCst) != fault as u8 {
            return Ok(());
        }
        Err(StorageError::Engine(fjall::Error::Io(std::io::ErrorKind::StorageFull.into())))
    }
}

/// An open store.
pub(super) struct Disk {
    path: PathBuf,
    /// `None` after a failed write: the engine takes no more then and is opened anew.
    engine: Option<Engine>,
    sealer: Sealer,
    faults: Faults,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Disk {
    /// Opens the store in a folder, or makes one, and reads everything.
    pub(super) fn open(path: &Path, faults: Faults) -> Result<(Self, Recovered), StorageError> {
        let mut disk = Self::open_unread(path, faults)?;
        let engine = disk.take_engine()?;
        let recovered = disk.recover(&engine)?;
        disk.engine = Some(engine);
        Ok((disk, recovered))
    }

    /// Opens the store in a folder, or makes one.
    pub(super) fn open_unread(path: &Path, faults: Faults) -> Result<Self, StorageError> {
        let file_error = |source| StorageError::File { path: path.to_owned(), source };
        format::check(path)?;
        files::make_folder(path).map_err(file_error)?;
        format::stamp(path)?;
        let key_file = path.join(seal::KEY_FILE);
        let key = match Key::read(&key_file)? {
            Some(key) => key,
            // A new key would not open what is there.
            None if path.join(OBJECTS).exists() => return Err(StorageError::KeyMissing(key_file)),
            None => {
                let key = Key::generate(&key_file)?;
                key.write(&key_file)?;
                key
            }
        };
        let engine = Engine::open(&path.join(OBJECTS)).map_err(StorageError::Engine)?;
        files::sync_folder(path).map_err(file_error)?;
        Ok(Self { path: path.to_owned(), engine: Some(engine), sealer: Sealer::new(&key), faults })
    }

    fn damaged(&self, what: impl Into<String>) -> StorageError {
        StorageError::Damaged { path: self.path.clone(), what: what.into() }
    }

    fn recover(&self, engine: &Engine) -> Result<Recovered, StorageError> {
        let mut recovered = Recovered::default();
        if let Some(revision) = engine.get(key::REVISION).map_err(StorageError::Engine)? {
            let bytes =
                revision.as_ref().try_into().map_err(|_| self.damaged("its revision is unreadable"))?;
            recovered.revision = u64::from_be_bytes(bytes);
        }
        for entry in engine.prefix(key::PLANES) {
            let name = entry.key().map_err(StorageError::Engine)?;
            let name = key::plane_name(&name).ok_or_else(|| self.damaged("a plane's name is unreadable"))?;
            recovered.planes.insert(name.to_owned(), BTreeMap::new());
        }
        for entry in engine.prefix(key::OBJECTS) {
            let (key, value) = entry.into_inner().map_err(StorageError::Engine)?;
            let place = key::decode(&key).ok_or_else(|| self.damaged("a key is unreadable"))?;
            let found = self.decode(&key, &value, &place)?;
            if let Some((revision, _)) = &found
                && *revision > recovered.revision
            {
                return Err(self.damaged(format!("{} is newer than the store", place.object.name)));
            }
            let plane = recovered.planes.get_mut(&place.plane);
            let plane = plane.ok_or_else(|| self.damaged(format!("plane {} is not listed", place.plane)))?;
            plane.entry(place.resource).or_default().push((place.object, found));
        }
        Ok(recovered)
    }

    /// Writes a batch; it is durable when this returns. After a failure it may be there or not.
    pub(super) fn write(&mut self, revision: u64, records: &[Record<'_>]) -> Result<(), StorageError> {
        let engine = self.take_engine()?;
        self.faults.strikes(Fault::Before)?;
        self.write_to(&engine, revision, records)?;
        self.faults.strikes(Fault::After)?;
        self.engine = Some(engine);
        Ok(())
    }

    fn take_engine(&mut self) -> Result<Engine, StorageError> {
        match self.engine.take() {
            Some(engine) => Ok(engine),
            None => Engine::open(&self.path.join(OBJECTS)).map_err(StorageError::Engine),
        }
    }

    /// Everything that has been written, as it is now; and by which key its secrets are sealed.
    pub(super) fn view(&mut self) -> Result<(View, Fingerprint), StorageError> {
        let engine = self.take_engine()?;
        let view = engine.view();
        self.engine = Some(engine);
        Ok((view, *self.sealer.fingerprint()))
    }

    fn write_to(&self, engine: &Engine, revision: u64, records: &[Record<'_>]) -> Result<(), StorageError> {
        let mut batch = engine.batch();
        for record in records {
            match record {
                Record::Put { plane, resource, key, revision, bytes, ready } => {
                    let place = key::encode(plane, resource, key);
                    let value = match ready {
                        Some(ready) if !value::is_secret(resource) => (*ready).clone(),
                        _ => {
                            let sealer = &self.sealer;
                            let value = value::encode(sealer, &place, resource, *revision, bytes);
                            value.ok_or_else(|| self.damaged("a secret cannot be encrypted"))?.into()
                        }
                    };
                    batch.insert(place, value);
                }
                Record::Remove { plane, resource, key, of_template: true } => {
                    batch.insert(key::encode(plane, resource, key), value::REMOVAL);
                }
                Record::Remove { plane, resource, key, of_template: false } => {
                    batch.remove(key::encode(plane, resource, key));
                }
                Record::CreatePlane(name) => batch.insert(key::plane(name), []),
                Record::DropPlane(name) => {
                    for entry in engine.prefix(&key::objects_of(name)) {
                        batch.remove(entry.key().map_err(StorageError::Engine)?);
                    }
                    batch.remove(key::plane(name));
                }
            }
        }
        batch.insert(key::REVISION, revision.to_be_bytes());
        batch.commit().map_err(StorageError::Engine)
    }

    fn decode(
        &self,
        place: &[u8],
        value: &[u8],
        key: &StoreKey,
    ) -> Result<Option<(u64, Bytes)>, StorageError> {
        match Stored::parse(value) {
            Some(Stored::Removed) => Ok(None),
            Some(Stored::Plain(revision, bytes)) => Ok(Some((revision, Bytes::copy_from_slice(bytes)))),
            Some(Stored::Sealed(revision, sealed)) => {
                let opened = self.sealer.open(place, sealed);
                let opened =
                    opened.map_err(|_| self.damaged("a secret does not fit the key in secrets.key"))?;
                Ok(Some((revision, opened.into())))
            }
            None => Err(self.damaged(format!("{} {} is unreadable", key.resource.resource, key.object.name))),
        }
    }
}
