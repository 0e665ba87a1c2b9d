//! Query parameters, and the `DeleteOptions` body: what a client asks of a verb.

use std::time::Duration;

use http::HeaderMap;
use http::header::USER_AGENT;
use serde_json::Value;

use crate::clock::Random;
use crate::error::{ApiError, Result, Subject};
use crate::field_error::{FieldError, FieldErrorType};
use crate::selector::Selector;
use crate::table::IncludeObject;
use crate::verbs::watch::WatchOptions;
use crate::verbs::{
    DeleteOptions, FieldValidation, ListOptions, Part, Propagation, VersionMatch, WriteOptions,
};

/// A watch without a timeout of its own ends after this long and up to twice as long, so that clients do not
/// all come back at once.
const WATCH_SECONDS: u64 = 1800;
/// The longest field manager.
const MAX_MANAGER: usize = crate::limits::bounds::MANAGER;

/// Parsed query parameters.
pub(super) struct Query(Vec<(String, String)>);

fn bad(message: impl Into<String>) -> ApiError {
    ApiError::BadRequest(message.into())
}

fn invalid(kind: &str, error: FieldError) -> ApiError {
    let subject = Subject { group: "meta.k8s.io".to_owned(), resource: kind.to_owned(), name: String::new() };
    ApiError::Invalid { subject, errors: vec![error] }
}

impl Query {
    pub(super) fn parse(query: Option<&str>) -> Self {
        Self(form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    fn flag(&self, name: &str) -> Result<Option<bool>> {
        match self.get(name) {
            None => Ok(None),
            Some("true" | "1" | "True" | "TRUE") => Ok(Some(true)),
            Some("false" | "0" | "False" | "FALSE") => Ok(Some(false)),
            Some(other) => Err(bad(format!("{name}: {other:?} is neither true nor false"))),
        }
    }

    fn number(&self, name: &str) -> Result<Option<u64>> {
        let parse = |text: &str| {
            text.parse().map_err(|_| bad(format!("{name}: {text:?} is not a number of 0 or more")))
        };
        self.get(name).map(parse).transpose()
    }

    pub(super) fn is_watch(&self) -> Result<bool> {
        Ok(self.flag("watch")?.unwrap_or(false))
    }

    /// The name that the field selector demands, if it demands one.
    pub(super) fn selected_name(&self) -> Option<&str> {
        let mut terms = self.get("fieldSelector")?.split(',');
        terms.find_map(|term| {
            let name = term.trim().strip_prefix("metadata.name=")?;
            Some(name.strip_prefix('=').unwrap_or(name).trim())
        })
    }

    pub(super) fn revision(&self) -> Result<Option<u64>> {
        let parse = |text: &str| text.parse().map_err(|_| bad(format!("invalid resource version {text:?}")));
        self.get("resourceVersion").map(parse).transpose()
    }

    pub(super) fn include_object(&self) -> Result<IncludeObject> {
        let given = self.get("includeObject");
        IncludeObject::from_query(given)
            .ok_or_else(|| bad(format!("includeObject: {given:?} must be one of None, Metadata, Object")))
    }

    pub(super) fn force(&self) -> Result<bool> {
        Ok(self.flag("force")?.unwrap_or(false))
    }

    fn selector(&self, known: &[(String, usize)], name: Option<&str>) -> Result<Selector> {
        let mut fields = self.get("fieldSelector").unwrap_or_default().to_owned();
        if let Some(name) = name {
            fields = format!("metadata.name={name}{}{fields}", if fields.is_empty() { "" } else { "," });
        }
        Selector::parse(self.get("labelSelector").unwrap_or_default(), &fields, known)
            .map_err(|e| bad(e.to_string()))
    }

    fn version_match(&self) -> Result<Option<VersionMatch>> {
        match self.get("resourceVersionMatch") {
            None => Ok(None),
            Some("Exact") => Ok(Some(VersionMatch::Exact)),
            Some("NotOlderThan") => Ok(Some(VersionMatch::NotOlderThan)),
            Some(other) => {
                let detail = "supported values: \"Exact\", \"NotOlderThan\"";
                let value = Value::String(other.to_owned());
                let error = FieldError::with_value(
                    "resourceVersionMatch",
                    FieldErrorType::NotSupported,
                    &value,
                    detail,
                );
                Err(invalid("ListOptions", error))
            }
        }
    }

    pub(super) fn list(&self, namespace: Option<&str>, known: &[(String, usize)]) -> Result<ListOptions> {
        let forbidden = |detail: &str| {
            invalid("ListOptions", FieldError::new("resourceVersionMatch", FieldErrorType::Forbidden, detail))
        };
        if self.get("sendInitialEvents").is_some() {
            let detail = "sendInitialEvents is forbidden for list";
            return Err(invalid(
                "ListOptions",
                FieldError::new("sendInitialEvents", FieldErrorType::Forbidden, detail),
            ));
        }
        let limit = self.number("limit")?.unwrap_or(0);
        let continue_token = self.get("continue").map(str::to_owned);
        let version = match (self.revision()?, self.version_match()?) {
            (None, Some(_)) => {
                return Err(forbidden(
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                ));
            }
            (Some(_), Some(_)) if continue_token.is_some() => {
                return Err(forbidden("resourceVersionMatch is forbidden when continue is provided"));
            }
            (Some(0), Some(VersionMatch::Exact)) => {
                return Err(forbidden(
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                ));
            }
            (Some(revision), _) if revision != 0 && continue_token.is_some() => {
                return Err(bad("specifying resource version is not allowed when using continue"));
            }
            (None | Some(0), _) => None,
            (Some(revision), Some(how)) => Some((revision, how)),
            // A page of a given revision is that revision's, or its next pages would not fit.
            (Some(revision), None) if limit > 0 => Some((revision, VersionMatch::Exact)),
            (Some(revision), None) => Some((revision, VersionMatch::NotOlderThan)),
        };
        let selector = self.selector(known, None)?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(ListOptions { namespace: namespace.map(str::to_owned), selector, limit, continue_token, version })
    }

    pub(super) fn watch(
        &self,
        namespace: Option<&str>,
        name: Option<&str>,
        known: &[(String, usize)],
        random: &Random,
    ) -> Result<WatchOptions> {
        let initial_events = self.flag("sendInitialEvents")?;
        let forbidden = |field: &str, detail: &str| {
            invalid("ListOptions", FieldError::new(field, FieldErrorType::Forbidden, detail))
        };
        match (initial_events, self.version_match()?) {
            (None, Some(_)) => {
                let detail =
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                return Err(forbidden("resourceVersionMatch", detail));
            }
            (Some(_), None | Some(VersionMatch::Exact)) => {
                let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                return Err(forbidden("resourceVersionMatch", detail));
            }
            _ => {}
        }
        let seconds = match self.number("timeoutSeconds")?.filter(|seconds| *seconds > 0) {
            Some(seconds) => seconds.min(24 * 3600),
            None => WATCH_SECONDS + random.next_u64() % WATCH_SECONDS,
        };
        Ok(WatchOptions {
            namespace: namespace.map(str::to_owned),
            selector: self.selector(known, name)?,
            from: self.revision()?,
            bookmarks: self.flag("allowWatchBookmarks")?.unwrap_or(false),
            initial_events,
            timeout: Duration::from_secs(seconds),
        })
    }

    fn dry_run(&self) -> Result<bool> {
        let given = self.0.iter().filter(|(key, value)| key == "dryRun" && !value.is_empty());
        dry_run(given.map(|(_, value)| value.as_str()))
    }

    pub(super) fn write(
        &self,
        headers: &HeaderMap,
        part: Part,
        duplicates: Vec<String>,
    ) -> Result<WriteOptions> {
        let validation = match self.get("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Strict") => FieldValidation::Strict,
            Some("Ignore") => FieldValidation::Ignore,
            Some(other) => {
                let detail = "supported values: \"Ignore\", \"Strict\", \"Warn\"";
                let value = Value::String(other.to_owned());
                let error =
                    FieldError::with_value("fieldValidation", FieldErrorType::NotSupported, &value, detail);
                return Err(invalid("CreateOptions", error));
            }
        };
        let manager = match self.get("fieldManager") {
            Some(manager) if manager.len() > MAX_MANAGER || manager.chars().any(char::is_control) => {
                let detail = format!("must be at most {MAX_MANAGER} printable characters");
                let value = Value::String(manager.chars().take(64).collect());
                return Err(invalid("CreateOptions", FieldError::invalid("fieldManager", &value, detail)));
            }
            Some(manager) => manager.to_owned(),
            None => user_agent(headers),
        };
        let named_manager = self.get("fieldManager").unwrap_or_default().to_owned();
        Ok(WriteOptions { manager, named_manager, dry_run: self.dry_run()?, validation, part, duplicates })
    }

    /// The manager of an apply must be named.
    pub(super) fn require_manager(&self) -> Result<()> {
        if self.get("fieldManager").is_some() {
            return Ok(());
        }
        let error = FieldError::new("fieldManager", FieldErrorType::Required, "is required for apply patch");
        Err(invalid("PatchOptions", error))
    }

    /// Options of a delete, from the body if there is one, and the query.
    pub(super) fn delete(&self, body: Option<&Value>) -> Result<DeleteOptions> {
        let body = body.unwrap_or(&Value::Null);
        let policy = body["propagationPolicy"].as_str().or_else(|| self.get("propagationPolicy"));
        let orphan = match body.get("orphanDependents") {
            Some(given) => given.as_bool(),
            None => self.flag("orphanDependents")?,
        };
        let propagation = match (policy, orphan) {
            (Some(_), Some(_)) => {
                let detail = "orphanDependents and deletionPropagation cannot be both set";
                let error = FieldError::new("propagationPolicy", FieldErrorType::Forbidden, detail);
                return Err(invalid("DeleteOptions", error));
            }
            (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            (None, None) => None,
            (Some(other), _) => {
                let detail = "supported values: \"Background\", \"Foreground\", \"Orphan\"";
                let value = Value::String(other.to_owned());
                let error =
                    FieldError::with_value("propagationPolicy", FieldErrorType::NotSupported, &value, detail);
                return Err(invalid("DeleteOptions", error));
            }
        };
        let in_body =
            body["dryRun"].as_array().into_iter().flatten().map(|value| value.as_str().unwrap_or("?"));
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Ok(DeleteOptions {
            propagation,
            uid: text(&body["preconditions"]["uid"]),
            resource_version: text(&body["preconditions"]["resourceVersion"]),
            dry_run: self.dry_run()? || dry_run(in_body)?,
        })
    }
}

fn dry_run<'a>(given: impl Iterator<Item = &'a str>) -> Result<bool> {
    let mut asked = false;
    for value in given {
        if value != "All" {
            let shown = Value::String(value.to_owned());
            let error = FieldError::with_value(
                "dryRun",
                FieldErrorType::NotSupported,
                &shown,
                "supported values: \"All\"",
            );
            return Err(invalid("CreateOptions", error));
        }
        asked = true;
    }
    Ok(asked)
}

/// The manager of a client that names none: its user agent up to the first slash.
fn user_agent(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name: String = agent.split('/').next().unwrap_or_default().chars().take(MAX_MANAGER).collect();
    if name.trim().is_empty() { "unknown".to_owned() } else { name }
}
