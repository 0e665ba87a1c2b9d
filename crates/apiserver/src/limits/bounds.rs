//! Bounds that are part of how the server works, and not up to whoever runs it. Those that may be set are in
//! [`Limits`](super::Limits).

/// Levels of nesting in a document that a client sends: what the JSON reader takes before it gives up.
pub(crate) const NESTING: usize = 128;
/// Levels of nesting after a patch. Below [`NESTING`] by what an answer may wrap around an object (a list, a watch
/// event, a table), so that everything that is stored can be read back.
pub(crate) const PATCHED_NESTING: usize = NESTING - 8;
/// Length of a field name in bytes. The longest that any kind knows are a few dozen; keys of labels and annotations
/// have at most 317.
pub(crate) const FIELD_NAME: usize = 4096;
/// Operations in a JSON patch: as many as Kubernetes allows.
pub(crate) const PATCH_OPERATIONS: usize = 10_000;
/// What a JSON patch may copy in all, in bytes of JSON: well above the largest object, far below what hurts.
pub(crate) const PATCH_COPIES: usize = 16 << 20;
/// The largest object that is kept, in bytes: that of the largest body by default. Many patches could make one
/// larger than any request.
pub(crate) const OBJECT: usize = 3 << 20;
/// Length of the name of a field manager: as in Kubernetes.
pub(crate) const MANAGER: usize = 128;
/// Length of a label or field selector in bytes. Kubernetes bounds it by the size of a request line; so do we.
pub(crate) const SELECTOR: usize = 16 << 10;
/// Requirements in one selector, each of which is checked against each object of a list: 256 of them on 10,000 objects
/// take some 30 ms.
pub(crate) const SELECTOR_TERMS: usize = 256;
