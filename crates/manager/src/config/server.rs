//! The server config: a `WorkloadOperator` document.
//!
//! This reads what is written, strictly; what it means together with the flags is decided by [`Config::from`](super::Config::from).

use std::path::PathBuf;

use compute_core::admission::guard::Subject;

use super::section::Section;
use super::{Bind, Mistake};

/// The version of the server config.
pub const API_VERSION: &str = "apiserver.config.datumapis.com/v1alpha1";
/// Its kind.
pub const KIND: &str = "WorkloadOperator";

/// Where metrics are, if nothing else is said.
const METRICS_ADDRESS: &str = ":8080";
/// Where webhooks are, if nothing else is said.
const WEBHOOK_ADDRESS: &str = ":9443";

/// How projects are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// There is one.
    #[default]
    Single,
    /// They are those of a core plane.
    Milo,
}

/// What runs instances in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Nothing runs; instances only look as if.
    Simulated,
    /// Another process does.
    None,
}

/// The providers that there are, as they are written.
const PROVIDERS: [(&str, Provider); 2] = [("simulated", Provider::Simulated), ("none", Provider::None)];

/// A certificate and its key, in files that somebody renews.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// What names them in complaints.
    pub(crate) field: String,
    /// The certificate, and those that lead to its authority.
    pub certificate: PathBuf,
    /// The key.
    pub key: PathBuf,
}

/// The server of webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookServer {
    /// Where it listens.
    pub bind: Bind,
    /// What it shows.
    pub certificates: CertificateFiles,
}

/// The server of metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsServer {
    /// Where it listens; none if there are no metrics to be had.
    pub bind: Option<Bind>,
    /// What it shows; plain HTTP without.
    pub certificates: Option<CertificateFiles>,
}

#[derive(Debug, Default)]
pub(super) struct Discovery {
    pub(super) mode: Mode,
    pub(super) cluster_name: Option<String>,
    pub(super) project_name: Option<String>,
    pub(super) internal_service_discovery: bool,
    pub(super) discovery_kubeconfig: Option<PathBuf>,
    pub(super) project_kubeconfig: Option<PathBuf>,
    pub(super) quota_kubeconfig: Option<PathBuf>,
}

/// What is written.
#[derive(Debug)]
pub(super) struct ServerConfig {
    pub(super) metrics: MetricsServer,
    pub(super) webhook: Option<WebhookServer>,
    pub(super) discovery: Discovery,
    pub(super) provider: Option<Provider>,
    pub(super) projector_identity: Option<Subject>,
    pub(super) guard_allow: Option<Vec<Subject>>,
}

impl ServerConfig {
    /// What holds if nothing is written.
    pub(super) fn empty() -> Result<Self, Mistake> {
        Ok(Self {
            metrics: metrics(None)?,
            webhook: None,
            discovery: Discovery::default(),
            provider: None,
            projector_identity: None,
            guard_allow: None,
        })
    }

    /// Reads the document.
    pub(super) fn read(field: &str, text: &str) -> Result<Self, Mistake> {
        let mut document = Section::document(field, text)?;
        for (name, wanted) in [("apiVersion", API_VERSION), ("kind", KIND)] {
            match document.text(name)? {
                Some(found) if found == wanted => {}
                Some(found) => return Err(Mistake::new(name, format!("must be {wanted}, not {found:?}"))),
                None => return Err(Mistake::new(name, format!("is missing; must be {wanted}"))),
            }
        }
        let config = Self {
            metrics: metrics(document.section("metricsServer")?)?,
            webhook: document.section("webhookServer")?.map(webhook).transpose()?,
            discovery: document.section("discovery")?.map(discovery).transpose()?.unwrap_or_default(),
            provider: document.text("provider")?.map(|name| provider(&name)).transpose()?,
            projector_identity: document
                .text("projectorIdentity")?
                .map(|text| subject("projectorIdentity", &text))
                .transpose()?,
            guard_allow: document.section("instanceGuard")?.map(guard).transpose()?.flatten(),
        };
        document.end()?;
        Ok(config)
    }
}

fn metrics(section: Option<Section>) -> Result<MetricsServer, Mistake> {
    let Some(mut section) = section else {
        return Ok(MetricsServer {
            bind: Bind::read("metricsServer.bindAddress", METRICS_ADDRESS)?,
            certificates: None,
        });
    };
    let bind = bind(&mut section, METRICS_ADDRESS)?;
    let certificates = certificates(&mut section)?;
    section.end()?;
    Ok(MetricsServer { bind, certificates })
}

fn webhook(mut section: Section) -> Result<WebhookServer, Mistake> {
    let address = section.name_of("bindAddress");
    let bind = bind(&mut section, WEBHOOK_ADDRESS)?;
    let folder = section.name_of("certDir");
    let certificates = certificates(&mut section)?;
    section.end()?;
    let bind = bind.ok_or_else(|| {
        Mistake::new(address, "must be an address; without webhooks, leave webhookServer out")
    })?;
    let certificates = certificates.ok_or_else(|| {
        Mistake::new(
            folder,
            "is missing; API servers call webhooks over TLS, and this is the folder of the certificate",
        )
    })?;
    Ok(WebhookServer { bind, certificates })
}

fn bind(section: &mut Section, usual: &str) -> Result<Option<Bind>, Mistake> {
    let field = section.name_of("bindAddress");
    let text = section.text_or_number("bindAddress")?;
    Bind::read(&field, text.as_deref().unwrap_or(usual))
}

fn certificates(section: &mut Section) -> Result<Option<CertificateFiles>, Mistake> {
    let field = section.name_of("certDir");
    let folder = section.text("certDir")?.map(PathBuf::from);
    let mut name = |name: &'static str, usual: &str| {
        let full = section.name_of(name);
        let text = section.text(name)?.unwrap_or_else(|| usual.to_owned());
        match text.contains('/') {
            true => Err(Mistake::new(full, format!("{text:?} must be the name of a file in certDir"))),
            false => Ok(text),
        }
    };
    let (certificate, key) = (name("certName", "tls.crt")?, name("keyName", "tls.key")?);
    Ok(folder.map(|folder| CertificateFiles {
        field,
        certificate: folder.join(certificate),
        key: folder.join(key),
    }))
}

fn discovery(mut section: Section) -> Result<Discovery, Mistake> {
    let mode = match section.text("mode")?.as_deref() {
        None | Some("single") => Mode::Single,
        Some("milo") => Mode::Milo,
        Some(other) => {
            return Err(Mistake::new(
                section.name_of("mode"),
                format!("must be milo or single, not {other:?}"),
            ));
        }
    };
    let mut path = |name| section.text(name).map(|path| path.map(PathBuf::from));
    let (discovery_kubeconfig, project_kubeconfig, quota_kubeconfig) =
        (path("discoveryKubeconfigPath")?, path("projectKubeconfigPath")?, path("quotaKubeconfigPath")?);
    let discovery = Discovery {
        mode,
        cluster_name: section.text("clusterName")?,
        project_name: section.text("projectName")?,
        internal_service_discovery: section.flag("internalServiceDiscovery")?.unwrap_or(false),
        discovery_kubeconfig,
        project_kubeconfig,
        quota_kubeconfig,
    };
    section.end()?;
    Ok(discovery)
}

fn provider(name: &str) -> Result<Provider, Mistake> {
    let found = PROVIDERS.iter().find(|(known, _)| *known == name);
    found.map(|(_, provider)| *provider).ok_or_else(|| {
        let known = PROVIDERS.map(|(known, _)| known).join(" and ");
        Mistake::new("provider", format!("there is no provider {name:?} in this version; there are {known}"))
    })
}

fn guard(mut section: Section) -> Result<Option<Vec<Subject>>, Mistake> {
    let field = section.name_of("allow");
    let allow = section.texts("allow")?;
    section.end()?;
    let Some(allow) = allow else { return Ok(None) };
    let entries = allow.iter().enumerate();
    entries
        .map(|(index, entry)| subject(&format!("{field}[{index}]"), entry))
        .collect::<Result<_, _>>()
        .map(Some)
}

fn subject(field: &str, text: &str) -> Result<Subject, Mistake> {
    text.parse().map_err(|error| Mistake::new(field, format!("{text:?} {error}")))
}
