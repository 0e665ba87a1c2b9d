//! A key of JSON content: equal values have equal keys, whatever the order of their members.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The key of a value, such as the `spec` of a CRD.
pub fn fingerprint(value: &Value) -> [u8; 32] {
    let mut digest = Sha256::new();
    feed(&mut digest, value);
    digest.finalize().into()
}

/// Every value begins with its type and every part of variable length with that length, so that no two values
/// feed the same bytes.
fn feed(digest: &mut Sha256, value: &Value) {
    match value {
        Value::Null => digest.update(b"z"),
        Value::Bool(flag) => digest.update(if *flag { b"t" } else { b"f" }),
        Value::Number(number) => feed_text(digest, b"n", &number.to_string()),
        Value::String(text) => feed_text(digest, b"s", text),
        Value::Array(entries) => {
            feed_length(digest, b"a", entries.len());
            entries.iter().for_each(|entry| feed(digest, entry));
        }
        Value::Object(members) => {
            feed_length(digest, b"o", members.len());
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            for (name, member) in members {
                feed_text(digest, b"k", name);
                feed(digest, member);
            }
        }
    }
}

fn feed_text(digest: &mut Sha256, type_: &[u8; 1], text: &str) {
    feed_length(digest, type_, text.len());
    digest.update(text);
}

fn feed_length(digest: &mut Sha256, type_: &[u8; 1], length: usize) {
    digest.update(type_);
    digest.update(length.to_le_bytes());
}
