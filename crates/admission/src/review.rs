//! The wire: `AdmissionReview` of `admission.k8s.io/v1`, as far as it is used here.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use compute_api::k8s::UserInfo;
use compute_core::admission::Refusal;
pub use compute_core::admission::guard::Operation;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// A write that an API server asks about.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// Tells this question from every other.
    #[serde(default)]
    pub uid: String,
    /// What is done.
    #[serde(deserialize_with = "operation")]
    pub operation: Operation,
    /// The resource that is written.
    pub resource: Resource,
    /// The part of it that is written; empty for the object itself.
    #[serde(default)]
    pub sub_resource: String,
    /// The object's name; empty if it is going to be generated.
    #[serde(default)]
    pub name: String,
    /// The object's namespace.
    #[serde(default)]
    pub namespace: String,
    /// Who asks.
    #[serde(default)]
    pub user_info: UserInfo,
    /// The object as it would be stored; none for a delete.
    #[serde(default)]
    pub object: Option<Value>,
    /// The object as it is stored; none for a create.
    #[serde(default)]
    pub old_object: Option<Value>,
}

/// A resource in one version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Resource {
    /// API group.
    #[serde(default)]
    pub group: String,
    /// Version.
    #[serde(default)]
    pub version: String,
    /// Plural name.
    #[serde(default)]
    pub resource: String,
}

fn operation<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Operation, D::Error> {
    let name = String::deserialize(deserializer)?;
    match name.as_str() {
        "CREATE" => Ok(Operation::Create),
        "UPDATE" => Ok(Operation::Update),
        "DELETE" => Ok(Operation::Delete),
        "CONNECT" => Ok(Operation::Connect),
        _ => Err(serde::de::Error::custom("unknown operation")),
    }
}

/// What cannot be answered because it is no question. Says nothing of what was sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadReview {
    /// It is not JSON, or not of the right form.
    #[error("the body is not an AdmissionReview: line {line}, column {column}")]
    Malformed {
        /// Where.
        line: usize,
        /// Where in the line.
        column: usize,
    },
    /// It is something else.
    #[error("expected an AdmissionReview of admission.k8s.io/v1 with a request")]
    Unexpected,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    request: Option<Request>,
}

impl Request {
    /// Reads the body of a call.
    ///
    /// # Errors
    ///
    /// If it is not a question.
    pub fn read(body: &[u8]) -> Result<Self, BadReview> {
        let review: Review = serde_json::from_slice(body)
            .map_err(|error| BadReview::Malformed { line: error.line(), column: error.column() })?;
        match review.request {
            Some(request) if review.api_version == API_VERSION && review.kind == KIND => Ok(request),
            _ => Err(BadReview::Unexpected),
        }
    }

    /// The name of the object, as far as anybody knows it.
    pub(crate) fn object_name(&self) -> &str {
        let own = || self.object.as_ref().or(self.old_object.as_ref())?["metadata"]["name"].as_str();
        if self.name.is_empty() { own().unwrap_or_default() } else { &self.name }
    }
}

/// What becomes of a write.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Why it is refused; none if it may go on.
    pub refusal: Option<Refusal>,
    /// What is done to the object: operations of a JSON patch.
    pub patch: Vec<Value>,
}

impl Answer {
    /// It may go on as it is.
    pub fn allow() -> Self {
        Self::default()
    }

    /// It may not.
    pub fn refuse(refusal: Refusal) -> Self {
        Self { refusal: Some(refusal), patch: Vec::new() }
    }

    /// The body of the answer to the question `uid`.
    pub fn write(&self, uid: &str) -> Vec<u8> {
        let mut response = json!({ "uid": uid, "allowed": self.refusal.is_none() });
        if let Some(refusal) = &self.refusal {
            response["status"] = json!({
                "status": "Failure", "code": refusal.code, "reason": refusal.reason,
                "message": refusal.message, "details": refusal.details,
            });
        }
        if !self.patch.is_empty() {
            let operations = Value::from(self.patch.clone()).to_string();
            response["patchType"] = json!("JSONPatch");
            response["patch"] = json!(STANDARD.encode(operations));
        }
        json!({ "apiVersion": API_VERSION, "kind": KIND, "response": response }).to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_read() {
        let body = json!({ "apiVersion": API_VERSION, "kind": KIND, "request": {
            "uid": "u", "operation": "UPDATE", "kind": { "group": "g", "version": "v", "kind": "K" },
            "resource": { "group": "g", "version": "v", "resource": "r" }, "subResource": "status",
            "name": "n", "namespace": "ns", "object": { "a": 1 }, "oldObject": null, "options": null, "dryRun": true,
            "userInfo": { "username": "ann", "uid": "7", "groups": ["a"], "extra": { "k": ["v"] } },
        } });
        let request = Request::read(body.to_string().as_bytes()).unwrap();
        assert_eq!(
            (request.uid.as_str(), request.operation, request.sub_resource.as_str()),
            ("u", Operation::Update, "status")
        );
        assert_eq!((request.object, request.old_object), (Some(json!({ "a": 1 })), None));
        assert_eq!(request.user_info.extra.unwrap()["k"], ["v"]);
        for bad in ["", "{", "[]", "{}", r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#] {
            assert!(Request::read(bad.as_bytes()).is_err(), "{bad}");
        }
        let other = body.to_string().replace("admission.k8s.io/v1", "admission.k8s.io/v1beta1");
        assert!(matches!(Request::read(other.as_bytes()), Err(BadReview::Unexpected)));
    }

    #[test]
    fn an_answer_is_written() {
        let read = |answer: &Answer| serde_json::from_slice::<Value>(&answer.write("u")).unwrap();
        assert_eq!(read(&Answer::allow())["response"], json!({ "uid": "u", "allowed": true }));
        let patched =
            Answer { patch: vec![json!({ "op": "add", "path": "/a", "value": 1 })], ..Answer::allow() };
        let patched = read(&patched);
        assert_eq!(patched["response"]["patchType"], "JSONPatch");
        let patch = STANDARD.decode(patched["response"]["patch"].as_str().unwrap()).unwrap();
        assert_eq!(
            serde_json::from_slice::<Value>(&patch).unwrap(),
            json!([{ "op": "add", "path": "/a", "value": 1 }])
        );
        let refused = read(&Answer::refuse(Refusal::bad_request("no")));
        assert_eq!(refused["response"]["allowed"], false);
        assert_eq!(refused["response"]["status"]["code"], 400);
    }
}
