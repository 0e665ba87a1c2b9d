//! Values on disk: a tag, the revision, and the object's bytes, plain or sealed.

use super::GroupResource;
use super::seal::Sealer;

const PLAIN: u8 = 0;
const SEALED: u8 = 1;
const REMOVED: u8 = 2;

/// The value that says that a plane has removed an object of its template.
pub(super) const REMOVAL: [u8; 1] = [REMOVED];

/// The parts of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored<'a> {
    /// The plane has removed an object of its template.
    Removed,
    /// An object's revision and bytes.
    Plain(u64, &'a [u8]),
    /// An object's revision and sealed bytes.
    Sealed(u64, &'a [u8]),
}

impl<'a> Stored<'a> {
    /// The parts of `value`; `None` if it is none.
    pub(super) fn parse(value: &'a [u8]) -> Option<Self> {
        let (tag, rest) = value.split_first()?;
        if *tag == REMOVED {
            return rest.is_empty().then_some(Self::Removed);
        }
        let (revision, bytes) = rest.split_first_chunk()?;
        let revision = u64::from_be_bytes(*revision);
        match *tag {
            PLAIN => Some(Self::Plain(revision, bytes)),
            SEALED => Some(Self::Sealed(revision, bytes)),
            _ => None,
        }
    }

    /// The revision, if there is an object.
    pub(super) fn revision(&self) -> Option<u64> {
        match self {
            Self::Removed => None,
            Self::Plain(revision, _) | Self::Sealed(revision, _) => Some(*revision),
        }
    }
}

/// What stands before the bytes of an object that is no secret.
pub(super) const HEAD: usize = 1 + 8;

/// That, for a revision.
pub(super) fn head(revision: u64) -> [u8; HEAD] {
    let mut head = [PLAIN; HEAD];
    head[1..].copy_from_slice(&revision.to_be_bytes());
    head
}

/// The value of an object; `None` if it is secret and cannot be sealed.
pub(super) fn encode(
    sealer: &Sealer,
    place: &[u8],
    resource: &GroupResource,
    revision: u64,
    bytes: &[u8],
) -> Option<Vec<u8>> {
    /// What sealing adds: a nonce and a tag.
    const SEAL: usize = 12 + 16;
    let mut value = Vec::with_capacity(HEAD + SEAL + bytes.len());
    value.extend_from_slice(&head(revision));
    if is_secret(resource) {
        value[0] = SEALED;
        sealer.seal(place, bytes, &mut value)?;
    } else {
        value.extend_from_slice(bytes);
    }
    Some(value)
}

/// Whether objects of a resource are kept sealed.
pub(super) fn is_secret(resource: &GroupResource) -> bool {
    resource.group.is_empty() && resource.resource == "secrets"
}
