//! Secrets at rest: the key in its file, and values sealed with it.
//!
//! Guarantees: the key file is readable by its owner alone, and is there whole before anything is sealed with it; a sealed
//! value is bound to its place, so that one cannot be passed off as another.

use std::path::Path;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use sha2::{Digest as _, Sha256};

use super::StorageError;
use super::files;
use crate::private_file;

/// The name of the key file in a store's folder.
pub(super) const KEY_FILE: &str = "secrets.key";
const KEY_SIZE: usize = 32;

/// Tells keys apart without giving them away.
pub(super) type Fingerprint = [u8; 32];

/// A key, as it is in its file.
#[derive(Clone)]
pub(super) struct Key([u8; KEY_SIZE]);

impl Key {
    /// The key in a file that only its owner may read; `None` if there is no such file.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, StorageError> {
        let Some(bytes) = private_file::read(path)? else { return Ok(None) };
        match bytes.try_into() {
            Ok(bytes) => Ok(Some(Self(bytes))),
            Err(_) => Err(StorageError::KeySize(path.to_owned())),
        }
    }

    /// A new key.
    pub(super) fn generate(path: &Path) -> Result<Self, StorageError> {
        let mut bytes = [0; KEY_SIZE];
        SystemRandom::new().fill(&mut bytes).map_err(|_| StorageError::File {
            path: path.to_owned(),
            source: std::io::Error::other("no random numbers to make a key of"),
        })?;
        Ok(Self(bytes))
    }

    /// Puts the key into its file.
    pub(super) fn write(&self, path: &Path) -> Result<(), StorageError> {
        files::write_private(path, &self.0)
            .map_err(|source| StorageError::File { path: path.to_owned(), source })
    }

    pub(super) fn fingerprint(&self) -> Fingerprint {
        Sha256::new().chain_update(b"secrets.key\0").chain_update(self.0).finalize().into()
    }
}

/// A value does not open: it was sealed with another key or for another place, or it is damaged.
#[derive(Clone, Copy, Debug)]
pub(super) struct DoesNotOpen;

/// Seals and opens values.
pub(super) struct Sealer {
    key: LessSafeKey,
    fingerprint: Fingerprint,
    random: SystemRandom,
}

impl Sealer {
    pub(super) fn new(key: &Key) -> Self {
        let unbound =
            UnboundKey::new(&AES_256_GCM, &key.0).expect("a key has the size that the cipher needs");
        Self { key: LessSafeKey::new(unbound), fingerprint: key.fingerprint(), random: SystemRandom::new() }
    }

    pub(super) fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// Appends the sealed form of `bytes` to `out`; `None` if the system has no random numbers.
    pub(super) fn seal(&self, place: &[u8], bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).ok()?;
        out.extend_from_slice(&nonce);
        let start = out.len();
        out.extend_from_slice(bytes);
        let sealed = &mut out[start..];
        let tag = self
            .key
            .seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), Aad::from(place), sealed)
            .ok()?;
        out.extend_from_slice(tag.as_ref());
        Some(())
    }

    /// What was sealed at `place`.
    pub(super) fn open(&self, place: &[u8], sealed: &[u8]) -> Result<Vec<u8>, DoesNotOpen> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>().ok_or(DoesNotOpen)?;
        let mut opened = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let length =
            self.key.open_in_place(nonce, Aad::from(place), &mut opened).map_err(|_| DoesNotOpen)?.len();
        opened.truncate(length);
        Ok(opened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_value_opens_at_its_place_with_its_key_alone() {
        let key = Key([7; KEY_SIZE]);
        let sealer = Sealer::new(&key);
        let mut sealed = Vec::new();
        sealer.seal(b"here", b"value", &mut sealed).unwrap();
        assert!(!sealed.windows(5).any(|window| window == b"value"));
        assert_eq!(sealer.open(b"here", &sealed).unwrap(), b"value");
        assert!(sealer.open(b"there", &sealed).is_err());
        assert!(Sealer::new(&Key([8; KEY_SIZE])).open(b"here", &sealed).is_err());
        for at in 0..sealed.len() {
            let mut altered = sealed.clone();
            altered[at] ^= 1;
            assert!(sealer.open(b"here", &altered).is_err());
            assert!(sealer.open(b"here", &sealed[..at]).is_err());
        }
        assert_ne!(key.fingerprint(), Key([8; KEY_SIZE]).fingerprint());
    }
}
