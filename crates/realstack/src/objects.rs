//! Objects on one API server, as JSON: create them, and wait for what becomes of them.

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Client;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::Error;

/// How long something may take to come about; it takes seconds on an idle machine, and minutes on a busy one.
const WITHIN: Duration = Duration::from_secs(300);
/// How often is looked.
const PERIOD: Duration = Duration::from_millis(100);
/// How many are created at a time.
const AT_ONCE: usize = 8;

/// The objects of one API server.
#[derive(Clone)]
pub(crate) struct Objects(Client);

impl Objects {
    pub(crate) fn new(client: Client) -> Self {
        Self(client)
    }

    /// Creates an object; one that is there already is left as it is. A server that is still finding its feet is asked again.
    pub(crate) async fn create(&self, object: &Value) -> Result<(), Error> {
        let path = path(object);
        let (collection, _) = path.rsplit_once('/').unwrap_or((&path, ""));
        let deadline = Instant::now() + WITHIN;
        loop {
            let request = request("POST", collection, object.to_string().into_bytes())?;
            let error = match self.0.request::<Value>(request).await {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            match &error {
                kube::Error::Api(status) if status.is_already_exists() => return Ok(()),
                // A wrong object stays wrong. A 403 or 404 may come from a server that has not yet taken in its roles or its CRDs.
                kube::Error::Api(status) if matches!(status.code, 400 | 401 | 405 | 413 | 422) => {
                    return Err(failed("create", &path, error));
                }
                _ if Instant::now() >= deadline => return Err(failed("create", &path, error)),
                _ => sleep(PERIOD).await,
            }
        }
    }

    /// Creates all of them, several at a time.
    pub(crate) async fn create_all<'a>(
        &self,
        objects: impl IntoIterator<Item = &'a Value>,
    ) -> Result<(), Error> {
        stream::iter(objects).map(|object| self.create(object)).buffer_unordered(AT_ONCE).try_collect().await
    }

    /// Waits until the object at `path` is as it should be, and returns it so.
    pub(crate) async fn wait(
        &self,
        path: &str,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Result<Value, Error> {
        let deadline = Instant::now() + WITHIN;
        loop {
            let last = match self.0.request::<Value>(request("GET", path, Vec::new())?).await {
                Ok(object) if holds(&object) => return Ok(object),
                Ok(object) => object["status"].to_string(),
                Err(error) => error.to_string(),
            };
            if Instant::now() >= deadline {
                return Err(Error::Late { what: format!("that {what} ({path})"), within: WITHIN, last });
            }
            sleep(PERIOD).await;
        }
    }
}

fn failed(action: &str, path: &str, error: kube::Error) -> Error {
    Error::Api { action: format!("{action} {path}"), source: Box::new(error) }
}

fn request(method: &str, path: &str, body: Vec<u8>) -> Result<http::Request<Vec<u8>>, Error> {
    http::Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body)
        .map_err(|error| Error::Client { url: path.to_owned(), why: error.to_string() })
}

/// Where an object is. The plural of every kind that is used here is the kind with an `s`.
pub(crate) fn path(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = text(&object["apiVersion"]);
    let root = if version.contains('/') { "apis" } else { "api" };
    let metadata = &object["metadata"];
    let namespace = match &metadata["namespace"] {
        Value::String(namespace) => format!("namespaces/{namespace}/"),
        _ => String::new(),
    };
    let plural = text(&object["kind"]).to_lowercase() + "s";
    format!("/{root}/{version}/{namespace}{plural}/{}", text(&metadata["name"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_where_its_kind_says() {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "a" } });
        assert_eq!(path(&namespace), "/api/v1/namespaces/a");
        let secret =
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "b", "namespace": "a" } });
        assert_eq!(path(&secret), "/api/v1/namespaces/a/secrets/b");
        let api = json!({ "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": { "name": "c" } });
        assert_eq!(path(&api), "/apis/apiregistration.k8s.io/v1/apiservices/c");
    }
}
