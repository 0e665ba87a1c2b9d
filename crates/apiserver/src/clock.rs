//! Time and randomness, as the embedder gives them: nothing else in this crate reads a clock or a random number,
//! so that a simulation with a seed replays exactly.

use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use rand::{RngCore, SeedableRng, rngs::StdRng};

/// Where the present time comes from.
pub trait Clock: Send + Sync + 'static {
    /// The present time.
    fn now(&self) -> Timestamp;
}

/// The machine's own clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clock")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A source of random numbers that many tasks share.
#[derive(Clone)]
pub struct Random(Arc<Mutex<StdRng>>);

impl Random {
    /// Numbers that differ in each process.
    pub fn from_os() -> Self {
        Self(Arc::new(Mutex::new(StdRng::from_os_rng())))
    }

    /// The same numbers for the same seed.
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(StdRng::seed_from_u64(seed))))
    }

    /// A random 64-bit number.
    pub fn next_u64(&self) -> u64 {
        self.0.lock().next_u64()
    }

    /// A random (version 4) UUID in its usual text form.
    pub fn uuid(&self) -> String {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut bytes = [0u8; 16];
        self.0.lock().fill_bytes(&mut bytes);
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let mut text = String::with_capacity(36);
        for (i, byte) in bytes.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            for digit in [byte >> 4, byte & 0x0f] {
                text.push(char::from(HEX[usize::from(digit)]));
            }
        }
        text
    }

    /// Five characters for `generateName`, from an alphabet without vowels and look-alikes.
    pub fn suffix(&self) -> String {
        const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut bits = self.next_u64();
        (0..5)
            .map(|_| {
                let at = bits % ALPHABET.len() as u64;
                bits /= ALPHABET.len() as u64;
                char::from(ALPHABET[at as usize])
            })
            .collect()
    }

    /// Bytes for a secret, as 43 URL-safe characters (256 bits).
    pub fn secret(&self) -> String {
        use base64::Engine as _;
        let mut bytes = [0u8; 32];
        self.0.lock().fill_bytes(&mut bytes);
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
    }
}

impl std::fmt::Debug for Random {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Random")
    }
}

/// A time as Kubernetes writes it in metadata: RFC 3339, whole seconds, UTC.
pub fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
