//! How an API server is reached: a kubeconfig, or the environment of a pod.
//!
//! A kubeconfig is looked at to its end before anything starts: what it names must be there. No complaint shows what is in a file.
//! Tokens and client certificates in files are read again while the process runs (`compute_runtime::transport`); the kubeconfig is not.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kube::Config;
use kube::config::{AuthInfo, Cluster, KubeConfigOptions, Kubeconfig, KubeconfigError};

use super::{Files, Mistake};

/// Where a pod finds who it is.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// How an API server is reached.
#[derive(Clone, Debug)]
pub enum Connection {
    /// As the pod that this process is.
    InCluster,
    /// As a kubeconfig says.
    Kubeconfig {
        /// What names it in complaints.
        field: String,
        /// Where it is.
        path: PathBuf,
        /// What is in it, with the paths in it made absolute.
        content: Box<Kubeconfig>,
    },
}

/// Tells API servers apart: connections of the same origin share theirs.
pub(crate) type Origin = Option<PathBuf>;

impl Connection {
    /// Reads the kubeconfig that a field names.
    pub(super) fn read(field: &str, path: &Path, files: &dyn Files) -> Result<Self, Mistake> {
        let here = path.display();
        let mistake = |said: String| Mistake::new(field, format!("{here} {said}"));
        let cannot = |path: &Path, error: &std::io::Error| {
            Mistake::because(field, &format!("cannot read {}", path.display()), error)
        };
        let bytes = files.read(path).map_err(|error| cannot(path, &error))?;
        let text =
            String::from_utf8(bytes).map_err(|_| mistake("is not a kubeconfig: it is not text".into()))?;
        let mut content = Kubeconfig::from_yaml(&text).map_err(|error| mistake(malformed(&error)))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let (cluster, user) = current(&mut content).map_err(mistake)?;
        check_cluster(cluster).map_err(mistake)?;
        let mut paths = vec![&mut cluster.certificate_authority];
        if let Some(user) = user {
            check_user(user).map_err(mistake)?;
            paths.extend([&mut user.token_file, &mut user.client_certificate, &mut user.client_key]);
        }
        for named in paths.into_iter().flatten() {
            let path = folder.join(&*named);
            let found = files.read(&path).map_err(|error| cannot(&path, &error))?;
            if found.trim_ascii().is_empty() {
                return Err(mistake(format!("names the file {}, which is empty", path.display())));
            }
            *named = path.display().to_string();
        }
        Ok(Self::Kubeconfig { field: field.to_owned(), path: path.to_owned(), content: Box::new(content) })
    }

    /// The cluster that this process runs in.
    pub(super) fn in_cluster(
        field: &str,
        env: &BTreeMap<String, String>,
        files: &dyn Files,
    ) -> Result<Self, Mistake> {
        for name in ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"] {
            if env.get(name).is_none_or(String::is_empty) {
                let said =
                    format!("must be given: the process does not run in a cluster ({name} is not set)");
                return Err(Mistake::new(field, said));
            }
        }
        for name in ["token", "ca.crt", "namespace"] {
            let path = Path::new(SERVICE_ACCOUNT).join(name);
            files.read(&path).map_err(|error| {
                let what =
                    format!("must be given: the pod's service account cannot be used: {}", path.display());
                Mistake::because(field, &what, &error)
            })?;
        }
        Ok(Self::InCluster)
    }

    /// What tells it apart.
    pub(crate) fn origin(&self) -> Origin {
        match self {
            Self::InCluster => None,
            Self::Kubeconfig { path, .. } => Some(path.clone()),
        }
    }

    /// What names it in complaints.
    pub(crate) fn field(&self) -> &str {
        match self {
            Self::InCluster => "the pod's service account",
            Self::Kubeconfig { field, .. } => field,
        }
    }

    /// What a client is made from.
    pub(crate) async fn config(&self) -> Result<Config, Mistake> {
        match self {
            Self::InCluster => {
                Config::incluster().map_err(|error| Mistake::because(self.field(), "cannot be used", &error))
            }
            Self::Kubeconfig { field, path, content } => {
                let options = KubeConfigOptions::default();
                let mut config = Config::from_custom_kubeconfig((**content).clone(), &options)
                    .await
                    .map_err(|error| Mistake::because(field, &path.display().to_string(), &error))?;
                if config.root_cert.as_ref().is_some_and(Vec::is_empty) {
                    let said = format!("{} names an authority without a certificate", path.display());
                    return Err(Mistake::new(field, said));
                }
                // It takes one from the environment, which is meant for others than API servers.
                config.proxy_url = None;
                Ok(config)
            }
        }
    }
}

/// The namespace of the pod that this process is.
pub(super) fn own_namespace(files: &dyn Files) -> Option<String> {
    let text = String::from_utf8(files.read(&Path::new(SERVICE_ACCOUNT).join("namespace")).ok()?).ok()?;
    Some(text.trim().to_owned()).filter(|namespace| !namespace.is_empty())
}

/// Says where, and nothing of what is there.
fn malformed(error: &KubeconfigError) -> String {
    let place = match error {
        KubeconfigError::Parse(error) => error.location(),
        _ => None,
    };
    match place {
        Some(place) => format!("is not a kubeconfig: line {}, column {}", place.line(), place.column()),
        None => "is not a kubeconfig".to_owned(),
    }
}

/// What the current context names.
fn current(content: &mut Kubeconfig) -> Result<(&mut Cluster, Option<&mut AuthInfo>), String> {
    let name = content.current_context.clone().filter(|name| !name.is_empty());
    let name = name.ok_or("has no current-context")?;
    let context = content.contexts.iter().find(|context| context.name == name);
    let context = context.and_then(|context| context.context.clone());
    let context = context.ok_or(format!("has no context {name:?}, which is its current-context"))?;
    let cluster = content.clusters.iter_mut().find(|cluster| cluster.name == context.cluster);
    let cluster = cluster.and_then(|cluster| cluster.cluster.as_mut());
    let cluster =
        cluster.ok_or(format!("has no cluster {:?}, which context {name:?} names", context.cluster))?;
    let user = match context.user.filter(|user| !user.is_empty()) {
        None => None,
        Some(user) => {
            let found = content.auth_infos.iter_mut().find(|info| info.name == user);
            let found = found.and_then(|info| info.auth_info.as_mut());
            Some(found.ok_or(format!("has no user {user:?}, which context {name:?} names"))?)
        }
    };
    Ok((cluster, user))
}

fn check_cluster(cluster: &Cluster) -> Result<(), String> {
    let server = cluster.server.as_deref().unwrap_or_default();
    let address: Option<http::Uri> = server.parse().ok();
    let is_good = address.as_ref().is_some_and(|address| {
        matches!(address.scheme_str(), Some("https" | "http"))
            && address.host().is_some_and(|host| !host.is_empty())
    });
    if !is_good {
        return Err("names a server that is not an https address".to_owned());
    }
    if cluster.proxy_url.as_ref().is_some_and(|proxy| !proxy.is_empty()) {
        return Err("names a proxy-url; proxies are not supported".to_owned());
    }
    Ok(())
}

fn check_user(user: &AuthInfo) -> Result<(), String> {
    if user.exec.is_some() || user.auth_provider.is_some() {
        return Err(
            "asks for a credential plugin, which is not supported; use a token, a tokenFile or a client certificate"
                .to_owned(),
        );
    }
    let has_certificate = user.client_certificate.is_some() || user.client_certificate_data.is_some();
    let has_key = user.client_key.is_some() || user.client_key_data.is_some();
    match (has_certificate, has_key) {
        (true, false) => Err("has a client certificate without a client key".to_owned()),
        (false, true) => Err("has a client key without a client certificate".to_owned()),
        _ => Ok(()),
    }
}
