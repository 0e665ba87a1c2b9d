//! When to look again at an instance that waits for quota.

use std::time::Duration;

/// How long until the answer is looked at again, by the age of the instance: people watch new ones closely.
pub fn recheck(age: Duration) -> Duration {
    let seconds = match age.as_secs() {
        0..60 => 1,
        60..300 => 15,
        300..600 => 60,
        _ => 300,
    };
    Duration::from_secs(seconds)
}

/// The first pause after a denial.
const FIRST_PAUSE: Duration = Duration::from_secs(15);
/// The longest.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// How far a pause is moved, so that those denied together do not ask together.
const SPREAD: f64 = 0.2;

/// How long until a denied claim is made again: 15 s doubling to 300 s, up to a fifth more or less. `denials`
/// counts those so far, from one; `chance` is a number from 0 to 1.
pub fn after_denial(denials: u32, chance: f64) -> Duration {
    let doublings = denials.saturating_sub(1).min(16);
    let pause = FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE);
    let chance = if chance.is_finite() { chance.clamp(0.0, 1.0) } else { 0.5 };
    pause.mul_f64(1.0 - SPREAD + 2.0 * SPREAD * chance)
}
