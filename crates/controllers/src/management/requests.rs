//! Answers of servers, read with care.

use compute_runtime::write::{Error, Result};

/// Whether a server that was asked for one object says that there is no such object.
///
/// A plane that is not there any more, a kind that is not installed and a wrong address are 404 as well, and say nothing about the object:
/// the answer must name it.
pub(super) fn says_absent(error: &Error, plural: &str, name: &str) -> bool {
    let Error::NotFound(status) = error else { return false };
    let names = status.details.as_ref().is_some_and(|about| about.kind == plural && about.name == name);
    status.reason == "NotFound" && names
}

/// The result of a deletion, to which an object that is gone, or is another one by now, is deleted.
pub(super) fn gone(result: Result<()>) -> Result<()> {
    match result {
        Err(Error::NotFound(_) | Error::Conflict(_)) => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use compute_api::kube::core::Status;
    use serde_json::json;

    use super::*;

    fn not_found(kind: &str, name: &str) -> Error {
        let details = serde_json::from_value(json!({ "kind": kind, "name": name })).unwrap();
        let status = Status::failure("", "NotFound").with_code(404);
        Error::NotFound(Box::new(Status { details: Some(details), ..status }))
    }

    #[test]
    fn only_an_answer_that_names_the_object_counts() {
        assert!(says_absent(&not_found("projects", "p"), "projects", "p"));
        assert!(!says_absent(&not_found("projects", "q"), "projects", "p"));
        assert!(!says_absent(&not_found("namespaces", "p"), "projects", "p"));
        let page = Error::NotFound(Box::new(Status::failure("404 page not found", "").with_code(404)));
        assert!(!says_absent(&page, "projects", "p"));
        assert!(gone(Err(not_found("projects", "p"))).is_ok());
    }
}
