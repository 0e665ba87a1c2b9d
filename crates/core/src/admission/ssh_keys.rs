//! Rules for SSH keys: lines of `user:key`, each key a real one.
//!
//! Nothing of a line is ever shown: what was pasted there by mistake may be a private key.

use compute_api::k8s_openapi::ByteString;
use serde_json::Value;

use super::{error::Errors, path::Path};

/// The kinds of keys, with how many parts follow the kind's name inside the key.
const KINDS: [(&str, usize); 7] = [
    ("ssh-ed25519", 1),
    ("ssh-rsa", 2),
    ("ecdsa-sha2-nistp256", 2),
    ("ecdsa-sha2-nistp384", 2),
    ("ecdsa-sha2-nistp521", 2),
    ("sk-ssh-ed25519@openssh.com", 2),
    ("sk-ecdsa-sha2-nistp256@openssh.com", 3),
];
/// Bytes of an Ed25519 key.
const ED25519: usize = 32;
/// Bytes of the shortest RSA modulus: 1024 bits.
const SHORTEST_RSA: usize = 128;
/// The longest name of a user.
const MAX_USER: usize = 32;

pub(super) fn check(keys: &str, path: &Path, errors: &mut Errors) {
    for (at, line) in keys.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        if let Err(why) = check_line(line.trim()) {
            errors.invalid_unseen(path, format!("line {}: {why}", at + 1));
        }
    }
}

fn check_line(line: &str) -> Result<(), &'static str> {
    let Some((user, key)) = line.split_once(':') else {
        return Err("must be user:key, such as root:ssh-ed25519 AAAA…");
    };
    if !is_user(user) {
        return Err(
            "the user before ':' must be at most 32 lower-case letters, digits, '_' and '-', starting with a letter or '_'",
        );
    }
    let mut words = key.split_ascii_whitespace();
    let (kind, encoded) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let Some((_, parts)) = KINDS.iter().find(|(name, _)| *name == kind) else {
        return Err(
            "the key must be a public key as OpenSSH has it: ssh-ed25519, ssh-rsa, ecdsa-sha2-nistp256, \
            ecdsa-sha2-nistp384, ecdsa-sha2-nistp521, sk-ssh-ed25519@openssh.com or sk-ecdsa-sha2-nistp256@openssh.com, \
            then the key itself",
        );
    };
    let decoded: Option<ByteString> = serde_json::from_value(Value::from(encoded)).ok();
    let is_real = decoded.is_some_and(|ByteString(bytes)| is_key(&bytes, kind, *parts));
    if is_real { Ok(()) } else { Err("the key is damaged or cut off; copy the whole line of the .pub file") }
}

fn is_user(user: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-');
    user.len() <= MAX_USER
        && user.bytes().all(is_inner)
        && user.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
}

/// Whether bytes are a public key of a kind: parts with their length before each, the first of them the name of the kind.
fn is_key(bytes: &[u8], kind: &str, wanted: usize) -> bool {
    let Some(parts) = parts(bytes) else { return false };
    let [name, parts @ ..] = parts.as_slice() else { return false };
    if *name != kind.as_bytes() || parts.len() != wanted || parts.iter().any(|part| part.is_empty()) {
        return false;
    }
    match kind {
        "ssh-ed25519" | "sk-ssh-ed25519@openssh.com" => parts[0].len() == ED25519,
        "ssh-rsa" => parts[1].len() >= SHORTEST_RSA,
        // The name of the curve, and a point on it, not compressed.
        _ => {
            let curve = parts[0];
            kind.trim_end_matches("@openssh.com").as_bytes().ends_with(curve)
                && parts[1].first() == Some(&4)
                && parts[1].len() == point_length(curve)
        }
    }
}

fn point_length(curve: &[u8]) -> usize {
    match curve {
        b"nistp256" => 1 + 2 * 32,
        b"nistp384" => 1 + 2 * 48,
        b"nistp521" => 1 + 2 * 66,
        _ => 0,
    }
}

fn parts(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (part, rest) = rest.split_at_checked(length)?;
        found.push(part);
        bytes = rest;
    }
    Some(found)
}
