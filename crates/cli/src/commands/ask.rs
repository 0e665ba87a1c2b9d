//! Questions. Only asked if there is somebody to answer.

use inquire::{Confirm, InquireError, Text};

use crate::failure::{Failure, Result};

/// What not to answer means.
pub(crate) fn unanswered(error: &InquireError) -> Failure {
    match error {
        InquireError::OperationCanceled | InquireError::OperationInterrupted => {
            Failure::new("stopped", "cancelled; nothing was written")
                .advice("run the command again when you like")
        }
        _ => Failure::usage("cannot ask", "the terminal does not answer")
            .advice("give everything as options, and -y"),
    }
}

/// Yes or no.
pub(crate) fn confirm(question: &str, default: bool) -> Result<bool> {
    Confirm::new(question).with_default(default).prompt().map_err(|error| unanswered(&error))
}

/// Has a name typed, so that nothing goes by a slip of the hand.
pub(crate) fn typed(question: &str) -> Result<String> {
    Text::new(question).prompt().map_err(|error| unanswered(&error))
}
