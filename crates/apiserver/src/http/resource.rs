//! Requests to resources: from method and path to a verb, and its answer in the wanted form.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::negotiate::{Encoding, Form, Shape, form};
use super::query::Query;
use super::respond::Pace;
use super::route::Place;
use super::{body, respond, review, stream};
use crate::audit::Trail;
use crate::auth::Identity;
use crate::error::{ApiError, Result};
use crate::planes::Plane;
use crate::server::Shared;
use crate::store::{Object, ObjectKey};
use crate::table::partial_object_metadata;
use crate::verbs::{self, Deleted, Listed, Part, Patch, Served, Target, Written};

type Answer = Result<Response<respond::Body>>;

/// What an answer needs beside the target.
struct Exchange<'a> {
    target: Target,
    parts: &'a http::request::Parts,
    query: Query,
    form: Form,
}

/// Answers a request to a resource of `group` and `version`, which the caller is allowed.
#[expect(clippy::too_many_arguments, reason = "each is another part of one request")]
pub(super) async fn serve<B>(
    shared: &Arc<Shared>,
    plane: &Arc<Plane>,
    identity: Arc<Identity>,
    (group, version): (&str, &str),
    place: &Place<'_>,
    query: Query,
    parts: &http::request::Parts,
    request_body: B,
) -> Answer
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Display,
{
    let registry = plane.registry();
    let resource = registry.find(group, version, place.plural).ok_or(ApiError::NoSuchPath)?;
    if place.namespace.is_some() && !resource.def.namespaced {
        return Err(ApiError::NoSuchPath);
    }
    if place.name.is_some() && place.namespace.is_none() && resource.def.namespaced {
        return Err(ApiError::NoSuchPath);
    }
    let part = match place.subresource {
        None => Part::Main,
        Some("status") if resource.def.status => Part::Status,
        Some("scale") if resource.def.scale.is_some() => Part::Scale,
        Some("finalize") if resource.is_namespace() => Part::Finalize,
        Some("token") if resource.is_service_account() => {
            let target = Target::new(shared, plane, resource, identity);
            return token(target, place, query, parts, request_body).await;
        }
        Some(_) => return Err(ApiError::NoSuchPath),
    };
    let form = form(&parts.headers)?;
    let target = Target::new(shared, plane, resource, identity);
    let exchange = Exchange { target, parts, query, form };
    if !exchange.target.resource.def.kept {
        return exchange
            .review(place, &body::read(&shared.options.limits, &parts.headers, request_body).await?);
    }
    let key = place.name.map(|name| ObjectKey::new(place.namespace.unwrap_or_default(), name));
    let answer = match (&parts.method, key, part) {
        (&Method::GET, None, Part::Main) => exchange.list_or_watch(place).await,
        (&Method::GET, Some(_), Part::Main) if exchange.query.is_watch()? => exchange.watch(place),
        (&Method::GET, Some(key), Part::Scale) => exchange.object(&verbs::get_scale(&exchange.target, &key)?),
        (&Method::GET, Some(key), Part::Main | Part::Status) => {
            let revision = exchange.query.revision()?;
            exchange.object(&verbs::get(&exchange.target, &key, revision)?)
        }
        (method, key, part) => {
            let body = body::read(&shared.options.limits, &parts.headers, request_body).await?;
            match (method, key, part) {
                (&Method::POST, None, Part::Main) => exchange.create(place, &body).await,
                (&Method::PUT, Some(key), part) => exchange.update(&key, part, &body).await,
                (&Method::PATCH, Some(key), part @ (Part::Main | Part::Status | Part::Scale)) => {
                    exchange.patch(&key, part, body).await
                }
                (&Method::DELETE, Some(key), Part::Main) => exchange.delete(&key, &body).await,
                (&Method::DELETE, None, Part::Main) if !exchange.target.resource.is_namespace() => {
                    exchange.delete_collection(place, &body).await
                }
                _ => Err(not_allowed()),
            }
        }
    };
    respond::noted(answer, exchange.target.said.take())
}

/// Answers a request for a token of a service account.
async fn token<B>(
    target: Target,
    place: &Place<'_>,
    query: Query,
    parts: &http::request::Parts,
    request_body: B,
) -> Answer
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Display,
{
    let (&Method::POST, Some(name)) = (&parts.method, place.name) else { return Err(not_allowed()) };
    let exchange = Exchange { target, parts, query, form: form(&parts.headers)? };
    let body = body::read(&exchange.target.shared.options.limits, &parts.headers, request_body).await?;
    let (request, _) = body::object(&parts.headers, &body)?;
    let key = ObjectKey::new(place.namespace.unwrap_or_default(), name);
    let answer = review::token_request(&exchange.target, &key, request)?;
    Ok(respond::with_code(exchange.value(&answer)?, StatusCode::CREATED))
}

fn not_allowed() -> ApiError {
    ApiError::MethodNotAllowed("the server does not allow this method on the requested resource".to_owned())
}

impl Exchange<'_> {
    async fn list_or_watch(&self, place: &Place<'_>) -> Answer {
        if self.query.is_watch()? {
            return self.watch(place);
        }
        let options = self.query.list(place.namespace, &self.target.resource.selectable)?;
        self.listed(&verbs::list(&self.target, &options)?).await
    }

    fn watch(&self, place: &Place<'_>) -> Answer {
        let known = &self.target.resource.selectable;
        let random = &self.target.shared.options.random;
        let options = self.query.watch(place.namespace, place.name, known, random)?;
        let include = self.query.include_object()?;
        if self.form.encoding != Encoding::Json {
            return Err(ApiError::NotAcceptable("application/json"));
        }
        let Target { shared, plane, identity, .. } = &self.target;
        let counted = shared.gate.watcher(plane.name(), identity)?;
        let encoder = stream::Encoder::new(self.target.clone(), self.form.shape, include);
        let events = verbs::watch::watch(self.target.clone(), options)?;
        Ok(respond::stream(encoder.encode(events), counted))
    }

    fn review(&self, place: &Place<'_>, body: &[u8]) -> Answer {
        let misplaced = self.target.resource.def.namespaced && place.namespace.is_none();
        if self.parts.method != Method::POST || place.name.is_some() || misplaced {
            return Err(not_allowed());
        }
        review::check_namespace(&self.target, place.namespace)?;
        let (object, _) = body::object(&self.parts.headers, body)?;
        let answer = review::answer(&self.target, place.namespace, object)?;
        Ok(respond::with_code(self.value(&answer)?, StatusCode::CREATED))
    }

    async fn create(&self, place: &Place<'_>, body: &[u8]) -> Answer {
        if self.target.resource.def.namespaced && place.namespace.is_none() {
            return Err(not_allowed());
        }
        let (object, duplicates) = body::object(&self.parts.headers, body)?;
        let options = self.query.write(&self.parts.headers, Part::Main, duplicates)?;
        let written = verbs::create(&self.target, place.namespace, object, &options).await?;
        Trail::of(self.parts).created(written.object.name());
        self.written(&written)
    }

    async fn update(&self, key: &ObjectKey, part: Part, body: &[u8]) -> Answer {
        let (object, duplicates) = body::object(&self.parts.headers, body)?;
        let options = self.query.write(&self.parts.headers, part, duplicates)?;
        self.written(&match part {
            Part::Scale => verbs::update_scale(&self.target, key, object, &options).await?,
            _ => verbs::update(&self.target, key, object, &options).await?,
        })
    }

    async fn patch(&self, key: &ObjectKey, part: Part, body: Bytes) -> Answer {
        let (patch, duplicates) = body::patch(&self.parts.headers, body, self.query.force()?)?;
        if matches!(patch, Patch::Apply { .. }) {
            self.query.require_manager()?;
        }
        let options = self.query.write(&self.parts.headers, part, duplicates)?;
        self.written(&match part {
            Part::Scale => verbs::patch_scale(&self.target, key, patch, &options).await?,
            _ => verbs::patch(&self.target, key, patch, &options).await?,
        })
    }

    fn delete_body(&self, body: &[u8]) -> Result<Option<Value>> {
        if body.is_empty() {
            return Ok(None);
        }
        let (options, _) = body::object(&self.parts.headers, body)?;
        match options["kind"].as_str() {
            None | Some("DeleteOptions") if options.is_object() => Ok(Some(options)),
            _ => Err(ApiError::BadRequest("the body of a delete must be a DeleteOptions object".to_owned())),
        }
    }

    async fn delete(&self, key: &ObjectKey, body: &[u8]) -> Answer {
        let options = self.query.delete(self.delete_body(body)?.as_ref())?;
        match verbs::delete(&self.target, key, &options).await? {
            Deleted::Pending(object) => Ok(respond::with_code(self.object(&object)?, StatusCode::ACCEPTED)),
            Deleted::Gone(object) => {
                let table = &self.target.resource.table;
                self.value(&json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                    "details": {
                        "name": &*object.meta.key.name, "group": table.group, "kind": table.resource, "uid": &*object.meta.uid,
                    },
                }))
            }
        }
    }

    async fn delete_collection(&self, place: &Place<'_>, body: &[u8]) -> Answer {
        if self.target.resource.def.namespaced && place.namespace.is_none() {
            return Err(not_allowed());
        }
        let picked = self.query.list(place.namespace, &self.target.resource.selectable)?;
        let options = self.query.delete(self.delete_body(body)?.as_ref())?;
        let objects = verbs::delete_collection(&self.target, &picked, &options).await?;
        let revision = self.target.plane.store.revision();
        self.listed(&Listed { objects, revision, continue_token: None, remaining: None }).await
    }

    fn written(&self, written: &Written) -> Answer {
        let mut response = self.object(&written.object)?;
        if written.created {
            *response.status_mut() = StatusCode::CREATED;
        }
        respond::warn(&mut response, &written.warnings);
        Ok(response)
    }

    fn value(&self, value: &Value) -> Answer {
        self.bytes(respond::serialise(value))
    }

    /// Ready JSON in the wanted encoding.
    fn bytes(&self, json: Bytes) -> Answer {
        let headers = &self.parts.headers;
        match self.form.encoding {
            Encoding::Json => Ok(respond::bytes(headers, json, "application/json")),
            Encoding::Yaml => {
                let value: Value =
                    serde_json::from_slice(&json).map_err(|e| ApiError::Internal(e.to_string()))?;
                let text = serde_saphyr::to_string(&value).map_err(|e| ApiError::Internal(e.to_string()))?;
                Ok(respond::bytes(headers, text.into(), "application/yaml"))
            }
        }
    }

    /// One object in the wanted shape.
    fn object(&self, object: &Served) -> Answer {
        match self.form.shape {
            Shape::Plain => self.bytes(object.bytes()),
            Shape::Metadata => self.value(&partial_object_metadata(&object.value())),
            Shape::Table => {
                let value = object.value();
                let metadata = json!({ "resourceVersion": value["metadata"]["resourceVersion"] });
                let printer = &self.target.resource.printer;
                let now = self.target.shared.options.clock.now();
                let row = printer.row(&value, self.query.include_object()?, now);
                self.value(&printer.table(metadata, vec![row], true))
            }
        }
    }

    /// A list in the wanted shape. A long one is made piece by piece, so that others have their turns in between.
    async fn listed(&self, listed: &Listed) -> Answer {
        let mut metadata = json!({ "resourceVersion": listed.revision.to_string() });
        if let Some(token) = &listed.continue_token {
            metadata["continue"] = json!(token);
        }
        if let Some(remaining) = listed.remaining {
            metadata["remainingItemCount"] = json!(remaining);
        }
        let def = &self.target.resource.def;
        let version = |object: &Arc<Object>| self.target.in_version(object);
        match self.form.shape {
            Shape::Table => {
                let printer = &self.target.resource.printer;
                let (include, now) = (self.query.include_object()?, self.target.shared.options.clock.now());
                let mut head = printer.table(metadata, Vec::new(), true);
                head.as_object_mut().map(|head| head.remove("rows"));
                let row = |object: &Arc<Object>| {
                    respond::serialise(&printer.row(&version(object).value(), include, now))
                };
                self.pieced(&head, "rows", &listed.objects, row).await
            }
            Shape::Metadata => {
                let head = json!({
                    "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
                });
                let item = |object: &Arc<Object>| {
                    respond::serialise(&partial_object_metadata(&version(object).value()))
                };
                self.pieced(&head, "items", &listed.objects, item).await
            }
            Shape::Plain => {
                let head = json!({
                    "apiVersion": def.gv.to_string(), "kind": def.names.list_kind, "metadata": metadata,
                });
                self.pieced(&head, "items", &listed.objects, |object: &Arc<Object>| version(object).bytes())
                    .await
            }
        }
    }

    /// An object with the members of `head` and a list `member` of what `piece` makes of each object.
    async fn pieced(
        &self,
        head: &Value,
        member: &str,
        objects: &[Arc<Object>],
        piece: impl Fn(&Arc<Object>) -> Bytes,
    ) -> Answer {
        let mut pace = Pace::default();
        let mut out = Vec::with_capacity(1024 + objects.iter().map(|o| o.bytes.len() + 1).sum::<usize>());
        out.extend_from_slice(head.to_string().as_bytes());
        out.pop();
        out.extend_from_slice(format!(",{}:[", Value::from(member)).as_bytes());
        for (i, object) in objects.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&piece(object));
            pace.spent(object.bytes.len()).await;
        }
        out.extend_from_slice(b"]}");
        match self.form.encoding {
            Encoding::Json => Ok(respond::long(&self.parts.headers, out.into(), "application/json").await),
            Encoding::Yaml => self.bytes(out.into()),
        }
    }
}
