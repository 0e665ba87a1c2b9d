//! Keys on disk.
//!
//! | shape | what it holds |
//! | --- | --- |
//! | `m` name | a fact about the whole store: `revision` |
//! | `p` plane | that the plane exists |
//! | `o` plane NUL group NUL resource NUL namespace NUL name | an object, or the mark that the plane has removed one of its template's |
//!
//! Every segment is always there, and none contains NUL: names are checked before they are stored. The plane comes
//! first, so that dropping a plane is one range.

use super::{GroupResource, ObjectKey};

/// The newest revision.
pub(super) const REVISION: &[u8] = b"mrevision";
/// What all keys of objects start with.
pub(super) const OBJECTS: &[u8] = b"o";
/// What all keys of planes start with.
pub(super) const PLANES: &[u8] = b"p";

/// The key of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoreKey {
    pub(super) plane: String,
    pub(super) resource: GroupResource,
    pub(super) object: ObjectKey,
}

/// The key of a plane.
pub(super) fn plane(name: &str) -> Vec<u8> {
    [PLANES, name.as_bytes()].concat()
}

/// The name in the key of a plane; `None` if it is none.
pub(super) fn plane_name(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key.strip_prefix(PLANES)?).ok()
}

/// What the keys of all objects of a plane start with.
pub(super) fn objects_of(plane: &str) -> Vec<u8> {
    [OBJECTS, plane.as_bytes(), b"\0"].concat()
}

/// The key of an object.
pub(super) fn encode(plane: &str, resource: &GroupResource, object: &ObjectKey) -> Vec<u8> {
    let segments = [plane, &resource.group, &resource.resource, &object.namespace, &object.name];
    let mut key = Vec::with_capacity(1 + segments.iter().map(|segment| segment.len() + 1).sum::<usize>());
    key.extend_from_slice(OBJECTS);
    for (i, segment) in segments.iter().enumerate() {
        if i > 0 {
            key.push(0);
        }
        key.extend_from_slice(segment.as_bytes());
    }
    key
}

/// The parts of an object's key; `None` if it is none.
pub(super) fn decode(key: &[u8]) -> Option<StoreKey> {
    let text = std::str::from_utf8(key.strip_prefix(OBJECTS)?).ok()?;
    let mut segments = text.split('\0');
    let mut next = || segments.next();
    let (plane, group, resource, namespace, name) = (next()?, next()?, next()?, next()?, next()?);
    if next().is_some() {
        return None;
    }
    Some(StoreKey {
        plane: plane.to_owned(),
        resource: GroupResource::new(group, resource),
        object: ObjectKey::new(namespace, name),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_come_back_and_are_told_apart(
            a in proptest::array::uniform5("[a-z.-]{0,8}"),
            b in proptest::array::uniform5("[a-z.-]{0,8}"),
        ) {
            let key = |s: &[String; 5]| encode(&s[0], &GroupResource::new(&s[1], &s[2]), &ObjectKey::new(&s[3], &s[4]));
            let decoded = decode(&key(&a)).unwrap();
            prop_assert_eq!(decoded.plane, a[0].clone());
            prop_assert_eq!(decoded.resource, GroupResource::new(&a[1], &a[2]));
            prop_assert_eq!(decoded.object, ObjectKey::new(&a[3], &a[4]));
            prop_assert_eq!(a == b, key(&a) == key(&b));
            prop_assert_eq!(key(&a).starts_with(&objects_of(&b[0])), a[0] == b[0]);
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for bad in [&b""[..], b"o", b"oa\0b\0c\0d", b"oa\0b\0c\0d\0e\0f", b"pa", b"o\xff\0\0\0\0"] {
            assert_eq!(decode(bad), None);
        }
    }
}
