//! Every way a request can fail, and the `Status` object that tells the client.
//!
//! Guarantees: the HTTP code, `reason` and `details` of each variant are those that Kubernetes clients
//! act on (`kubectl` waits on `AlreadyExists`, client-go retries on `Conflict`, reflectors relist on `Expired`).

use http::StatusCode;
use serde_json::{Value, json};

use crate::authz::{Attributes, Decision, Target};
use crate::field_error::FieldError;
use crate::hooks::Denial;

/// The result of anything that serves a request.
pub type Result<T, E = ApiError> = std::result::Result<T, E>;

/// Which object an error speaks of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// API group; empty for core.
    pub group: String,
    /// Plural resource name (`kind` for validation errors, as Kubernetes has it).
    pub resource: String,
    /// Object name; may be empty.
    pub name: String,
}

impl Subject {
    /// Resource and group: `workloads.compute.datumapis.com`.
    pub(crate) fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.resource.clone()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }
}

/// One `cause` of a `Status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Machine-readable reason.
    pub reason: String,
    /// What is wrong.
    pub message: String,
    /// Which field; may be empty.
    pub field: String,
}

/// A failed request. Not retryable unless a variant says otherwise.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// The request itself makes no sense.
    #[error("{0}")]
    BadRequest(String),
    /// No valid credentials.
    #[error("Unauthorized")]
    Unauthorized,
    /// Valid credentials, not allowed.
    #[error("{message}")]
    Forbidden {
        /// The object, if the caller may know of it.
        subject: Subject,
        /// Why.
        message: String,
        /// Causes, e.g. that the namespace is being terminated.
        causes: Vec<Cause>,
    },
    /// No such object.
    #[error("{} {:?} not found", .0.qualified(), .0.name)]
    NotFound(Subject),
    /// No such path.
    #[error("the server could not find the requested resource")]
    NoSuchPath,
    /// The resource does not know this verb.
    #[error("{0}")]
    MethodNotAllowed(String),
    /// None of the accepted media types can be produced.
    #[error("only the following media types are accepted: {0}")]
    NotAcceptable(&'static str),
    /// A create met an existing object.
    #[error("{} {:?} already exists", .0.qualified(), .0.name)]
    AlreadyExists(Subject),
    /// The object has changed, or a precondition does not hold. Retryable after reading again.
    #[error("Operation cannot be fulfilled on {} {:?}: {message}", .subject.qualified(), .subject.name)]
    Conflict {
        /// The object.
        subject: Subject,
        /// What does not hold.
        message: String,
    },
    /// A server-side apply met fields of other managers.
    #[error("{message}")]
    ApplyConflict {
        /// All conflicts in words.
        message: String,
        /// One cause per conflicting field.
        causes: Vec<Cause>,
    },
    /// The revision is no longer in the history window. Retryable by a fresh list.
    #[error("{message}")]
    Expired {
        /// In words.
        message: String,
        /// A continue token that goes on at the present revision, if the caller was paging.
        continue_token: Option<String>,
    },
    /// Too much at once. Retryable after `retry_after` seconds.
    #[error("{message}")]
    TooManyRequests {
        /// Of what there is too much.
        message: String,
        /// When to try again, in seconds.
        retry_after: u32,
    },
    /// The client took too long to send its request.
    #[error("the request did not arrive within {0} seconds")]
    TooSlow(u64),
    /// The body is too large.
    #[error("Request entity too large: limit is {0} bytes")]
    TooLarge(usize),
    /// The patch has too many operations, or makes the object too large.
    #[error("{0}")]
    TooLargePatch(String),
    /// The body's media type is not supported.
    #[error("the body of the request was in an unknown format - accepted media types include: {0}")]
    UnsupportedMediaType(&'static str),
    /// The object breaks the rules of its kind. `subject.resource` is the kind.
    #[error("{}", invalid_message(.subject, .errors))]
    Invalid {
        /// The object.
        subject: Subject,
        /// Everything that is wrong.
        errors: Vec<FieldError>,
    },
    /// The patch cannot be applied to the object.
    #[error("{0}")]
    Unprocessable(String),
    /// The asked revision lies in the future. Retryable.
    #[error("Too large resource version: {asked}, current: {current}")]
    ResourceVersionTooLarge {
        /// What was asked.
        asked: u64,
        /// Where the server is.
        current: u64,
    },
    /// A hook refuses the request, or one that must answer cannot. Retryable if the status says so.
    #[error("{0}")]
    Denied(Box<Denial>),
    /// A fault of the server.
    #[error("Internal error occurred: {0}")]
    Internal(String),
}

impl From<crate::patch::Error> for ApiError {
    fn from(error: crate::patch::Error) -> Self {
        use crate::patch::Error;
        match error {
            Error::Malformed(message) => Self::BadRequest(message),
            Error::Invalid(message) => Self::Unprocessable(message),
            Error::TooLarge(message) => Self::TooLargePatch(message),
        }
    }
}

fn invalid_message(subject: &Subject, errors: &[FieldError]) -> String {
    let joined = match errors {
        [] => "unknown error".to_owned(),
        [one] => one.to_string(),
        many => format!("[{}]", many.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    };
    format!("{} {:?} is invalid: {joined}", subject.qualified(), subject.name)
}

impl ApiError {
    /// The caller may not do it.
    pub(crate) fn refused(attributes: &Attributes<'_>, decision: &Decision<'_>) -> Self {
        let subject = match attributes.target {
            Target::Resource(resource) => Subject {
                group: resource.group.to_owned(),
                resource: resource.resource.to_owned(),
                name: resource.name.to_owned(),
            },
            Target::Path(_) => Subject::default(),
        };
        let message = attributes.forbidden_message(&decision.reason());
        Self::Forbidden { subject, message, causes: Vec::new() }
    }

    /// The HTTP status code.
    pub fn code(&self) -> StatusCode {
        match self {
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden { .. } => StatusCode::FORBIDDEN,
            Self::NotFound(_) | Self::NoSuchPath => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotAcceptable(_) => StatusCode::NOT_ACCEPTABLE,
            Self::AlreadyExists(_) | Self::Conflict { .. } | Self::ApplyConflict { .. } => {
                StatusCode::CONFLICT
            }
            Self::Expired { .. } => StatusCode::GONE,
            Self::TooManyRequests { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::TooSlow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge(_) | Self::TooLargePatch(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Invalid { .. } | Self::Unprocessable(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::ResourceVersionTooLarge { .. } => StatusCode::GATEWAY_TIMEOUT,
            Self::Denied(denial) => {
                StatusCode::from_u16(denial.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
            }
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The machine-readable reason; may be empty if a hook refuses.
    pub fn reason(&self) -> &str {
        match self {
            Self::BadRequest(_) => "BadRequest",
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden { .. } => "Forbidden",
            Self::NotFound(_) | Self::NoSuchPath => "NotFound",
            Self::MethodNotAllowed(_) => "MethodNotAllowed",
            Self::NotAcceptable(_) => "NotAcceptable",
            Self::AlreadyExists(_) => "AlreadyExists",
            Self::Conflict { .. } | Self::ApplyConflict { .. } => "Conflict",
            Self::Expired { .. } => "Expired",
            Self::TooManyRequests { .. } => "TooManyRequests",
            Self::TooSlow(_) => "Timeout",
            Self::TooLarge(_) | Self::TooLargePatch(_) => "RequestEntityTooLarge",
            Self::UnsupportedMediaType(_) => "UnsupportedMediaType",
            Self::Invalid { .. } => "Invalid",
            Self::Unprocessable(_) => "Invalid",
            Self::ResourceVersionTooLarge { .. } => "Timeout",
            Self::Denied(denial) => &denial.reason,
            Self::Internal(_) => "InternalError",
        }
    }

    /// The `Status` object that the client gets.
    pub fn to_status(&self) -> Value {
        if let Self::Denied(denial) = self {
            return denial.to_status();
        }
        let mut details = serde_json::Map::new();
        let mut metadata = json!({});
        let mut subject_details = |subject: &Subject| {
            for (key, value) in
                [("name", &subject.name), ("group", &subject.group), ("kind", &subject.resource)]
            {
                if !value.is_empty() {
                    details.insert(key.to_owned(), Value::String(value.clone()));
                }
            }
        };
        let mut causes: Vec<Cause> = Vec::new();
        match self {
            Self::NotFound(subject) | Self::AlreadyExists(subject) | Self::Conflict { subject, .. } => {
                subject_details(subject);
            }
            Self::Forbidden { subject, causes: given, .. } => {
                subject_details(subject);
                causes.clone_from(given);
            }
            Self::Invalid { subject, errors } => {
                subject_details(subject);
                causes = errors
                    .iter()
                    .map(|e| Cause {
                        reason: e.type_.reason().to_owned(),
                        message: e.message(),
                        field: e.path.clone(),
                    })
                    .collect();
            }
            Self::ApplyConflict { causes: given, .. } => causes.clone_from(given),
            Self::Expired { continue_token: Some(token), .. } => metadata = json!({ "continue": token }),
            Self::TooManyRequests { retry_after, .. } => {
                details.insert("retryAfterSeconds".to_owned(), json!(retry_after));
            }
            Self::ResourceVersionTooLarge { .. } => {
                details.insert("retryAfterSeconds".to_owned(), json!(1));
                causes.push(Cause {
                    reason: "ResourceVersionTooLarge".to_owned(),
                    message: "Too large resource version".to_owned(),
                    field: String::new(),
                });
            }
            _ => {}
        }
        if !causes.is_empty() {
            let causes = causes.into_iter().map(|cause| {
                let mut entry = json!({ "reason": cause.reason, "message": cause.message });
                if !cause.field.is_empty() {
                    entry["field"] = Value::String(cause.field);
                }
                entry
            });
            details.insert("causes".to_owned(), causes.collect());
        }
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.to_string(),
            "reason": self.reason(),
            "code": self.code().as_u16(),
        });
        if !details.is_empty() {
            status["details"] = Value::Object(details);
        }
        status
    }
}
