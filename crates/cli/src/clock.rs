//! The present time. Everything that is said about times takes it as a parameter; this is where it comes from.

use compute_api::k8s::Timestamp;

/// The present time.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clock")]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}
