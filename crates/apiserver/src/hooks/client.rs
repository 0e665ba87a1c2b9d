//! Where a webhook is and whom it must prove to be: `clientConfig`.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde::Deserialize;
use serde_json::json;

use super::transport::{Endpoint, PostError};
use crate::field_error::{FieldError, FieldErrorType};
use crate::meta::NameRule;

/// How `clientConfig.service` is found: a plane has no cluster network of its own.
pub trait Resolver: Send + Sync {
    /// The `https` URL at which a service answers, path included.
    ///
    /// It only says where to connect: the webhook must show a certificate for `<name>.<namespace>.svc`, as on a cluster.
    ///
    /// # Errors
    /// There is no such service, or no way to it.
    fn resolve(&self, namespace: &str, name: &str, port: u16, path: &str) -> Result<Uri, Unresolved>;
}

/// Why a service cannot be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unresolved {
    /// There is none of that name.
    #[error("not found")]
    NotFound,
    /// There is one, but nothing here leads to what is behind it.
    #[error(
        "cannot be reached: this server has no cluster network; use clientConfig.url, or a service of type ExternalName"
    )]
    NoWay,
}

/// A resolver for planes without services.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoServices;

impl Resolver for NoServices {
    fn resolve(&self, _: &str, _: &str, _: u16, _: &str) -> Result<Uri, Unresolved> {
        Err(Unresolved::NotFound)
    }
}

/// `clientConfig` as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Spec {
    url: Option<String>,
    service: Option<ServiceSpec>,
    ca_bundle: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ServiceSpec {
    namespace: Option<String>,
    name: Option<String>,
    path: Option<String>,
    port: Option<i64>,
}

#[derive(Clone, Debug)]
struct Service {
    namespace: String,
    name: String,
    path: String,
    port: u16,
}

#[derive(Clone, Debug)]
enum Place {
    Url(Uri),
    Service(Service),
}

/// A compiled `clientConfig`.
#[derive(Clone, Debug)]
pub(super) struct Client {
    place: Place,
    /// Who may vouch for the webhook. None until a bundle is filled in, which often comes after the configuration itself.
    trust: Option<Arc<RootCertStore>>,
}

impl Client {
    /// Compiles a `clientConfig`; what is wrong with it is added to `errors`.
    pub(super) fn compile(spec: Spec, path: &str, errors: &mut Vec<FieldError>) -> Option<Self> {
        let trust =
            spec.ca_bundle.and_then(|bundle| read_bundle(&bundle, &format!("{path}.caBundle"), errors));
        let place = match (spec.url, spec.service) {
            (Some(url), None) => read_url(&url, &format!("{path}.url"), errors).map(Place::Url),
            (None, Some(service)) => {
                read_service(service, &format!("{path}.service"), errors).map(Place::Service)
            }
            _ => {
                let detail = "exactly one of url or service is required";
                errors.push(FieldError::new(path, FieldErrorType::Required, detail));
                None
            }
        };
        Some(Self { place: place?, trust })
    }

    /// Where to call now, under the name that errors show for it; `Err` says why nowhere.
    pub(super) fn endpoint(&self, resolver: &dyn Resolver) -> (String, Result<Endpoint, PostError>) {
        match &self.place {
            Place::Url(url) => {
                let authority = url.authority().map_or("", |authority| authority.as_str());
                let shown = format!("https://{authority}{}", url.path());
                (shown, Endpoint::new(url, url.host().unwrap_or_default(), authority, self.trust.clone()))
            }
            Place::Service(Service { namespace, name, path, port }) => {
                let host = format!("{name}.{namespace}.svc");
                let authority = format!("{host}:{port}");
                let endpoint = match resolver.resolve(namespace, name, *port, path) {
                    Ok(url) => Endpoint::new(&url, &host, &authority, self.trust.clone()),
                    Err(why) => Err(PostError::NoService(name.clone(), why)),
                };
                (format!("https://{authority}{path}"), endpoint)
            }
        }
    }
}

/// The certificates of a bundle. A blank bundle is none yet: tools put one in where they are going to fill in theirs.
fn read_bundle(text: &str, path: &str, errors: &mut Vec<FieldError>) -> Option<Arc<RootCertStore>> {
    let mut problem = |what: &str| {
        // The bundle itself would only drown the message.
        let detail = format!("unable to load root certificates: {what}");
        errors.push(FieldError::invalid(path, &json!("<CA bundle>"), detail));
    };
    let Ok(pem) = STANDARD.decode(text) else {
        problem("the bundle is not base64");
        return None;
    };
    if pem.trim_ascii().is_empty() {
        return None;
    }
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let Ok(certificate) = certificate else {
            problem("unable to parse bytes as PEM block");
            return None;
        };
        if roots.add(certificate).is_err() {
            problem("a certificate cannot be parsed");
            return None;
        }
    }
    if roots.is_empty() {
        problem("unable to parse bytes as PEM block");
        return None;
    }
    Some(Arc::new(roots))
}

fn read_url(text: &str, path: &str, errors: &mut Vec<FieldError>) -> Option<Uri> {
    const FORM: &str = "; desired format: https://host[/path]";
    let before = errors.len();
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    let Ok(url) = text.parse::<Uri>() else {
        let detail = format!("url must be a valid URL{FORM}");
        errors.push(FieldError::new(path, FieldErrorType::Required, detail));
        return None;
    };
    let mut invalid =
        |value: &str, detail: String| errors.push(FieldError::invalid(path, &json!(value), detail));
    let scheme = url.scheme_str().unwrap_or_default();
    if scheme != "https" {
        invalid(scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    }
    let host = url.host().unwrap_or_default();
    if host.is_empty() {
        invalid(host, format!("host must be specified{FORM}"));
    } else if server_name(host).is_none() {
        invalid(host, format!("host must be a host name or address{FORM}"));
    }
    if url.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        // What stands there may be a password.
        invalid("<user information>", "user information is not permitted in the URL".to_owned());
    }
    if !fragment.is_empty() {
        invalid(fragment, "fragments are not permitted in the URL".to_owned());
    }
    if let Some(query) = url.query().filter(|query| !query.is_empty()) {
        invalid(query, "query parameters are not permitted in the URL".to_owned());
    }
    (errors.len() == before).then_some(url)
}

/// The name that a certificate must be for, from the host of a URL.
pub(super) fn server_name(host: &str) -> Option<ServerName<'static>> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    ServerName::try_from(bare.to_owned()).ok()
}

fn read_service(spec: ServiceSpec, path: &str, errors: &mut Vec<FieldError>) -> Option<Service> {
    let before = errors.len();
    let (name, namespace) = (spec.name.unwrap_or_default(), spec.namespace.unwrap_or_default());
    for (field, value) in [("name", &name), ("namespace", &namespace)] {
        let at = format!("{path}.{field}");
        if value.is_empty() {
            errors.push(FieldError::new(
                at,
                FieldErrorType::Required,
                format!("service {field} is required"),
            ));
        } else if let Some(problem) = NameRule::Label.problem(value) {
            // Both become parts of a host name.
            errors.push(FieldError::invalid(at, &json!(value), problem));
        }
    }
    let given = spec.port.unwrap_or(443);
    let port = u16::try_from(given).ok().filter(|port| *port > 0);
    if port.is_none() {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(format!("{path}.port"), &json!(given), detail));
    }
    let service_path = spec.path.unwrap_or_default();
    check_path(&service_path, &format!("{path}.path"), errors);
    let service_path = if service_path.is_empty() { "/".to_owned() } else { service_path };
    let service = Service { namespace, name, path: service_path, port: port? };
    (errors.len() == before).then_some(service)
}

fn check_path(text: &str, path: &str, errors: &mut Vec<FieldError>) {
    if matches!(text, "" | "/") {
        return;
    }
    let mut invalid = |detail: String| errors.push(FieldError::invalid(path, &json!(text), detail));
    let Some(rest) = text.strip_prefix('/') else {
        invalid("must start with a '/'".to_owned());
        return;
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    for (i, segment) in rest.split('/').enumerate() {
        if segment.is_empty() {
            invalid(format!("segment[{i}] may not be empty"));
        } else if let Some(problem) = NameRule::Subdomain.problem(segment) {
            invalid(format!("segment[{i}]: {problem}"));
        }
    }
}
