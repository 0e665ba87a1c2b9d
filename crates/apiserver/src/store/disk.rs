//! The durable form of the store: one `fjall` keyspace, written in batches, each of which is on disk before it is answered.
//!
//! Guarantees: a batch is there after a crash whole or not at all; what [`Disk::write`] has returned `Ok` for is there;
//! values of Secrets are encrypted, and bound to their key, so that one cannot be passed off as another. A store of a
//! newer format is refused, not guessed at.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bytes::Bytes;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};

use super::key::{self, StoreKey};
use super::{GroupResource, ObjectKey};

/// The format that this version writes. Raised with every change that older versions would misread.
const FORMAT: u32 = 1;
/// Objects live in memory: the engine's own caches are kept small.
const CACHE_BYTES: u64 = 4 << 20;
const MEMTABLE_BYTES: u64 = 8 << 20;
const JOURNAL_BYTES: u64 = 64 << 20;

/// First byte of a value: what follows.
const PLAIN: u8 = 0;
const ENCRYPTED: u8 = 1;
const REMOVED: u8 = 2;

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
    /// The engine failed.
    #[error("the storage engine failed")]
    Engine(#[source] fjall::Error),
    /// The store was written by a newer version.
    #[error("the store in {path} has format {found}; this version reads up to {FORMAT}: use a newer version")]
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
    /// An object.
    Put { plane: &'a str, resource: &'a GroupResource, key: &'a ObjectKey, revision: u64, bytes: &'a [u8] },
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
    key: LessSafeKey,
    random: SystemRandom,
    faults: Faults,
}

struct Engine {
    database: Database,
    keyspace: Keyspace,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Engine {
    fn open(path: &Path) -> Result<Self, StorageError> {
        let database = Database::builder(path.join("objects"))
            .cache_size(CACHE_BYTES)
            .max_journaling_size(JOURNAL_BYTES)
            .open()
            .map_err(StorageError::Engine)?;
        let options = || KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES);
        let keyspace = database.keyspace("objects", options).map_err(StorageError::Engine)?;
        Ok(Self { database, keyspace })
    }
}

impl Disk {
    /// Opens the store in a folder, or makes one.
    pub(super) fn open(path: &Path, faults: Faults) -> Result<(Self, Recovered), StorageError> {
        fs::create_dir_all(path).map_err(|source| StorageError::File { path: path.to_owned(), source })?;
        let random = SystemRandom::new();
        let key = secret_key(&path.join("secrets.key"), &random)?;
        let engine = Engine::open(path)?;
        let disk = Self { path: path.to_owned(), engine: None, key, random, faults };
        disk.check_format(&engine)?;
        let recovered = disk.recover(&engine)?;
        Ok((Self { engine: Some(engine), ..disk }, recovered))
    }

    fn damaged(&self, what: impl Into<String>) -> StorageError {
        StorageError::Damaged { path: self.path.clone(), what: what.into() }
    }

    fn check_format(&self, engine: &Engine) -> Result<(), StorageError> {
        let Some(found) = engine.keyspace.get(key::FORMAT).map_err(StorageError::Engine)? else {
            engine.keyspace.insert(key::FORMAT, FORMAT.to_be_bytes()).map_err(StorageError::Engine)?;
            return engine.database.persist(PersistMode::SyncAll).map_err(StorageError::Engine);
        };
        let found: [u8; 4] =
            found.as_ref().try_into().map_err(|_| self.damaged("its format is unreadable"))?;
        match u32::from_be_bytes(found) {
            found if found > FORMAT => Err(StorageError::NewerFormat { path: self.path.clone(), found }),
            _ => Ok(()),
        }
    }

    fn recover(&self, engine: &Engine) -> Result<Recovered, StorageError> {
        let mut recovered = Recovered::default();
        if let Some(revision) = engine.keyspace.get(key::REVISION).map_err(StorageError::Engine)? {
            let bytes =
                revision.as_ref().try_into().map_err(|_| self.damaged("its revision is unreadable"))?;
            recovered.revision = u64::from_be_bytes(bytes);
        }
        for entry in engine.keyspace.prefix(key::PLANES) {
            let name = entry.key().map_err(StorageError::Engine)?;
            let name = std::str::from_utf8(&name[key::PLANES.len()..]);
            let name = name.map_err(|_| self.damaged("a plane's name is unreadable"))?;
            recovered.planes.insert(name.to_owned(), BTreeMap::new());
        }
        for entry in engine.keyspace.prefix(key::OBJECTS) {
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
        let engine = match self.engine.take() {
            Some(engine) => engine,
            None => Engine::open(&self.path)?,
        };
        self.faults.strikes(Fault::Before)?;
        self.write_to(&engine, revision, records)?;
        self.faults.strikes(Fault::After)?;
        self.engine = Some(engine);
        Ok(())
    }

    fn write_to(&self, engine: &Engine, revision: u64, records: &[Record<'_>]) -> Result<(), StorageError> {
        let Engine { database, keyspace } = engine;
        let mut batch = database.batch().durability(Some(PersistMode::SyncData));
        for record in records {
            match record {
                Record::Put { plane, resource, key, revision, bytes } => {
                    let place = key::encode(plane, resource, key);
                    let value = self.encode(&place, resource, *revision, bytes)?;
                    batch.insert(keyspace, place, value);
                }
                Record::Remove { plane, resource, key, of_template: true } => {
                    batch.insert(keyspace, key::encode(plane, resource, key), [REMOVED]);
                }
                Record::Remove { plane, resource, key, of_template: false } => {
                    batch.remove(keyspace, key::encode(plane, resource, key));
                }
                Record::CreatePlane(name) => batch.insert(keyspace, key::plane(name), []),
                Record::DropPlane(name) => {
                    for entry in keyspace.prefix(key::objects_of(name)) {
                        batch.remove(keyspace, entry.key().map_err(StorageError::Engine)?);
                    }
                    batch.remove(keyspace, key::plane(name));
                }
            }
        }
        batch.insert(keyspace, key::REVISION, revision.to_be_bytes());
        batch.commit().map_err(StorageError::Engine)
    }

    fn encode(
        &self,
        place: &[u8],
        resource: &GroupResource,
        revision: u64,
        bytes: &[u8],
    ) -> Result<Vec<u8>, StorageError> {
        let mut value = Vec::with_capacity(1 + 8 + NONCE_LEN + bytes.len() + AES_256_GCM.tag_len());
        if !is_secret(resource) {
            value.push(PLAIN);
            value.extend_from_slice(&revision.to_be_bytes());
            value.extend_from_slice(bytes);
            return Ok(value);
        }
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).map_err(|_| self.damaged("no random numbers to encrypt with"))?;
        let mut sealed = bytes.to_vec();
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(place), &mut sealed)
            .map_err(|_| self.damaged("a secret cannot be encrypted"))?;
        value.push(ENCRYPTED);
        value.extend_from_slice(&revision.to_be_bytes());
        value.extend_from_slice(&nonce);
        value.extend_from_slice(&sealed);
        Ok(value)
    }

    fn decode(
        &self,
        place: &[u8],
        value: &[u8],
        key: &StoreKey,
    ) -> Result<Option<(u64, Bytes)>, StorageError> {
        let unreadable =
            || self.damaged(format!("{} {} is unreadable", key.resource.resource, key.object.name));
        let (tag, rest) = value.split_first().ok_or_else(unreadable)?;
        if *tag == REMOVED {
            return Ok(None);
        }
        let (revision, rest) = rest.split_first_chunk().ok_or_else(unreadable)?;
        let revision = u64::from_be_bytes(*revision);
        match *tag {
            PLAIN => Ok(Some((revision, Bytes::copy_from_slice(rest)))),
            ENCRYPTED => {
                let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>().ok_or_else(unreadable)?;
                let mut sealed = sealed.to_vec();
                let opened = self.key.open_in_place(
                    Nonce::assume_unique_for_key(*nonce),
                    Aad::from(place),
                    &mut sealed,
                );
                let opened =
                    opened.map_err(|_| self.damaged("a secret does not fit the key in secrets.key"))?;
                Ok(Some((revision, Bytes::copy_from_slice(opened))))
            }
            _ => Err(unreadable()),
        }
    }
}

fn is_secret(resource: &GroupResource) -> bool {
    resource.group.is_empty() && resource.resource == "secrets"
}

/// The key in a file that only its owner may read; made when there is none.
fn secret_key(path: &Path, random: &SystemRandom) -> Result<LessSafeKey, StorageError> {
    const SIZE: usize = 32;
    let file_error = |source| StorageError::File { path: path.to_owned(), source };
    let bytes = match fs::read(path) {
        Ok(bytes) => {
            let mode = fs::metadata(path).map_err(file_error)?.permissions().mode();
            if mode & 0o077 != 0 {
                return Err(StorageError::KeyMode(path.to_owned()));
            }
            bytes
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let mut bytes = vec![0; SIZE];
            random.fill(&mut bytes).map_err(|_| file_error(std::io::Error::other("no random numbers")))?;
            // Whole or not at all: half a key would lock the secrets out.
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
            bytes
        }
        Err(error) => return Err(file_error(error)),
    };
    let key = UnboundKey::new(&AES_256_GCM, &bytes).map_err(|_| StorageError::KeySize(path.to_owned()))?;
    Ok(LessSafeKey::new(key))
}
