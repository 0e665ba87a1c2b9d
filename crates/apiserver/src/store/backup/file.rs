//! The form of a backup: a stream that says at its end that it is whole.
//!
//! | part | bytes |
//! | --- | --- |
//! | magic | 8 |
//! | version of this form, format of the store's records | 4, 4 |
//! | newest revision, time in microseconds since 1970 | 8, 8 |
//! | fingerprint of the key by which Secrets are sealed | 32 |
//! | records: length of key, length of value, key, value | 4, 4, … |
//! | end mark in place of a key's length, number of records | 4, 8 |
//! | SHA-256 of everything before | 32 |
//!
//! Numbers are big-endian. Records are those of the store ([`key`], [`value`](super::super::value)), planes before
//! objects, each group in order of its keys.
//!
//! Guarantees: a stream that ends early, goes on, or has been altered is told from a whole one; memory is bounded by one
//! record, whatever the stream claims.

use std::io::{BufReader, BufWriter, Read, Write};

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::{BackupError, BackupSummary};
use crate::store::format::FORMAT;
use crate::store::key;
use crate::store::seal::Fingerprint;
use crate::store::value::Stored;

const MAGIC: &[u8; 8] = b"PLANES\r\n";
/// The form that this version writes. Raised with every change that older versions would misread.
pub(super) const VERSION: u32 = 1;
/// Stands where a record's key length would.
const END: u32 = u32::MAX;
/// Longer than any key (its segments are names) and any value (an object is as large as a request's body at most).
const MAX_KEY: usize = 16 << 10;
const MAX_VALUE: usize = 64 << 20;
const BUFFER: usize = 64 << 10;

/// What a backup says of itself before its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The newest revision.
    pub(super) revision: u64,
    /// When it was taken.
    pub(super) taken: Timestamp,
    /// By which key its Secrets are sealed.
    pub(super) key: Fingerprint,
}

/// A record, and what it is of.
pub(super) struct Record {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
}

/// Counts what has been seen.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    records: u64,
    planes: u64,
    objects: u64,
    secrets: u64,
    bytes: u64,
}

impl Tally {
    fn count(&mut self, key: &[u8], value: &[u8]) {
        self.records += 1;
        if key.starts_with(key::PLANES) {
            self.planes += 1;
            return;
        }
        match Stored::parse(value) {
            Some(Stored::Plain(..)) => self.objects += 1,
            Some(Stored::Sealed(..)) => {
                self.objects += 1;
                self.secrets += 1;
            }
            Some(Stored::Removed) | None => {}
        }
    }

    fn summary(&self, header: &Header) -> BackupSummary {
        BackupSummary {
            taken: header.taken,
            revision: header.revision,
            planes: self.planes,
            objects: self.objects,
            secrets: self.secrets,
            bytes: self.bytes,
        }
    }
}

/// Writes a backup.
pub(super) struct BackupWriter<W: Write> {
    out: BufWriter<W>,
    digest: Sha256,
    header: Header,
    tally: Tally,
}

impl<W: Write> BackupWriter<W> {
    pub(super) fn start(out: W, header: Header) -> Result<Self, BackupError> {
        let out = BufWriter::with_capacity(BUFFER, out);
        let mut writer = Self { out, digest: Sha256::new(), header, tally: Tally::default() };
        writer.put(MAGIC)?;
        writer.put(&VERSION.to_be_bytes())?;
        writer.put(&FORMAT.to_be_bytes())?;
        writer.put(&header.revision.to_be_bytes())?;
        writer.put(&header.taken.as_microsecond().to_be_bytes())?;
        writer.put(&header.key)?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), BackupError> {
        self.digest.update(bytes);
        self.tally.bytes += bytes.len() as u64;
        self.out.write_all(bytes).map_err(BackupError::Write)
    }

    pub(super) fn record(&mut self, key: &[u8], value: &[u8]) -> Result<(), BackupError> {
        if key.len() > MAX_KEY || value.len() > MAX_VALUE {
            return Err(BackupError::TooLarge(key.escape_ascii().to_string()));
        }
        // Both fit: the bounds are far below what four bytes hold.
        self.put(&(key.len() as u32).to_be_bytes())?;
        self.put(&(value.len() as u32).to_be_bytes())?;
        self.put(key)?;
        self.put(value)?;
        self.tally.count(key, value);
        Ok(())
    }

    /// Says that it is whole, and hands everything over to the writer underneath.
    pub(super) fn finish(mut self) -> Result<(BackupSummary, W), BackupError> {
        self.put(&END.to_be_bytes())?;
        self.put(&self.tally.records.to_be_bytes())?;
        let digest: [u8; 32] = self.digest.finalize_reset().into();
        self.put(&digest)?;
        let out = self.out.into_inner().map_err(|error| BackupError::Write(error.into_error()))?;
        Ok((self.tally.summary(&self.header), out))
    }
}

/// Reads a backup.
pub(super) struct BackupReader<R: Read> {
    input: BufReader<R>,
    digest: Sha256,
    header: Header,
    tally: Tally,
}

impl<R: Read> BackupReader<R> {
    pub(super) fn start(input: R) -> Result<Self, BackupError> {
        let header = Header { revision: 0, taken: Timestamp::UNIX_EPOCH, key: [0; 32] };
        let input = BufReader::with_capacity(BUFFER, input);
        let mut reader = Self { input, digest: Sha256::new(), header, tally: Tally::default() };
        match reader.take(MAGIC.len()) {
            Ok(magic) if magic == MAGIC => {}
            Ok(_) | Err(BackupError::Truncated) => return Err(BackupError::NotABackup),
            Err(error) => return Err(error),
        }
        for (newest, what) in [(VERSION, "backup"), (FORMAT, "store")] {
            let found = u32::from_be_bytes(reader.array()?);
            if found > newest {
                return Err(BackupError::Newer { what, found, newest });
            }
        }
        let revision = u64::from_be_bytes(reader.array()?);
        let taken = i64::from_be_bytes(reader.array()?);
        let taken = Timestamp::from_microsecond(taken).map_err(|_| BackupError::Altered)?;
        reader.header = Header { revision, taken, key: reader.array()? };
        Ok(reader)
    }

    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    /// The next record; `None` after the last, when the whole has been found to be as it was written.
    pub(super) fn next(&mut self) -> Result<Option<Record>, BackupError> {
        let length = u32::from_be_bytes(self.array()?);
        if length == END {
            self.finish()?;
            return Ok(None);
        }
        let value_length = u32::from_be_bytes(self.array()?) as usize;
        if length as usize > MAX_KEY || value_length > MAX_VALUE {
            return Err(BackupError::Altered);
        }
        let (key, value) = (self.take(length as usize)?, self.take(value_length)?);
        self.tally.count(&key, &value);
        Ok(Some(Record { key, value }))
    }

    /// What has been read.
    pub(super) fn summary(&self) -> BackupSummary {
        self.tally.summary(&self.header)
    }

    fn finish(&mut self) -> Result<(), BackupError> {
        let records = u64::from_be_bytes(self.array()?);
        let expected: [u8; 32] = self.digest.finalize_reset().into();
        let found: [u8; 32] = self.array()?;
        if records != self.tally.records || found != expected {
            return Err(BackupError::Altered);
        }
        match self.input.read(&mut [0]).map_err(BackupError::Read)? {
            0 => Ok(()),
            _ => Err(BackupError::Altered),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BackupError> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => BackupError::Truncated,
            _ => BackupError::Read(error),
        })?;
        self.seen(&bytes);
        Ok(bytes)
    }

    fn take(&mut self, length: usize) -> Result<Vec<u8>, BackupError> {
        // Grows with what comes, not with what is claimed.
        let mut bytes = Vec::new();
        (&mut self.input).take(length as u64).read_to_end(&mut bytes).map_err(BackupError::Read)?;
        if bytes.len() < length {
            return Err(BackupError::Truncated);
        }
        self.seen(&bytes);
        Ok(bytes)
    }

    fn seen(&mut self, bytes: &[u8]) {
        self.digest.update(bytes);
        self.tally.bytes += bytes.len() as u64;
    }
}
