//! A plane of plain Kubernetes: an API server with RBAC and an audit log, and the controllers that make it behave like one.
//!
//! Command lines and credentials only; nothing here runs anything. All API servers share one etcd, each under a prefix of its own.

use std::path::{Path, PathBuf};

use crate::certs::{self, Authority, Certificate};
use crate::clients::write_kubeconfig;
use crate::process::{Probe, Process};
use crate::server::Server;
use crate::state::Folder;
use crate::{Error, files};

/// What kube-controller-manager does here: namespaces and owned objects go away, roles aggregate, token Secrets get their tokens. There are no
/// nodes and no Pods that run, so everything else has nothing to do.
const CONTROLLERS: &str = "namespace-controller,garbage-collector-controller,clusterrole-aggregation-controller,\
                           serviceaccount-token-controller,ttl-after-finished-controller";

/// Who, which verb, on what, which code; of every request that was answered. Left out is who asks whether the server is well: that is this
/// crate, and it is refused until the server knows its own roles.
const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    nonResourceURLs: [/healthz*, /livez*, /readyz*]
  - level: Metadata
";

/// The user that kube-controller-manager is; Kubernetes gives it its role.
const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";
/// The name by which an API server passes requests on to aggregated ones.
const FRONT_PROXY: &str = "front-proxy";

/// Who may be in a token file.
pub(crate) struct Account {
    pub(crate) user: String,
    pub(crate) groups: &'static str,
    pub(crate) token: String,
}

impl Account {
    pub(crate) fn new(user: impl Into<String>, groups: &'static str) -> Result<Self, Error> {
        Ok(Self { user: user.into(), groups, token: certs::token()? })
    }
}

/// Where etcd is, and what opens it.
pub(crate) struct Etcd {
    pub(crate) process: Process,
    url: String,
    ca: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

/// A plane that is ready to be started.
pub(crate) struct Plane {
    pub(crate) server: Server,
    pub(crate) apiserver: Process,
    pub(crate) controllers: Process,
    pki: PathBuf,
}

/// The programs that a plane runs.
pub(crate) struct Programs<'a> {
    pub(crate) apiserver: &'a Path,
    pub(crate) controllers: &'a Path,
}

/// What tells one plane from another.
pub(crate) struct Names<'a> {
    /// Of its kubeconfig, its etcd prefix and its certificates.
    pub(crate) plane: &'a str,
    /// Of its API server.
    pub(crate) apiserver: &'a str,
    /// Of its kube-controller-manager.
    pub(crate) controllers: &'a str,
}

/// Writes a certificate and its key as `<name>.crt` and `<name>.key`.
pub(crate) fn write_certificate(
    folder: &Path,
    name: &str,
    certificate: &Certificate,
) -> Result<(PathBuf, PathBuf), Error> {
    let (crt, key) = (folder.join(format!("{name}.crt")), folder.join(format!("{name}.key")));
    files::write(&crt, &certificate.certificate_pem)?;
    files::write(&key, &certificate.key_pem)?;
    Ok((crt, key))
}

/// `--name=value`.
pub(crate) fn flag(name: &str, value: impl AsRef<std::ffi::OsStr>) -> String {
    format!("--{name}={}", value.as_ref().to_string_lossy())
}

impl Etcd {
    /// Makes its certificates and its command line. Who has no certificate gets no answer; its health is told on a port of its own.
    pub(crate) fn prepare(folder: &Folder, program: &Path, ports: [u16; 3]) -> Result<Self, Error> {
        let pki = folder.pki("etcd");
        files::create_folder(&pki)?;
        let authority = Authority::generate("etcd-ca")?;
        let ca = pki.join("ca.crt");
        files::write(&ca, &authority.certificate_pem)?;
        let (server, server_key) = write_certificate(&pki, "server", &authority.server(&[])?)?;
        let (certificate, key) = write_certificate(&pki, "client", &authority.client("apiserver", None)?)?;
        let [client, peer, health] = ports;
        let url = format!("https://127.0.0.1:{client}");
        let peers = format!("https://127.0.0.1:{peer}");
        let health = format!("http://127.0.0.1:{health}");
        let arguments = vec![
            flag("name", "realstack"),
            flag("data-dir", folder.path().join("etcd")),
            flag("listen-client-urls", &url),
            flag("advertise-client-urls", &url),
            flag("listen-peer-urls", &peers),
            flag("initial-advertise-peer-urls", &peers),
            flag("initial-cluster", format!("realstack={peers}")),
            flag("listen-metrics-urls", &health),
            flag("client-cert-auth", "true"),
            flag("trusted-ca-file", &ca),
            flag("cert-file", &server),
            flag("key-file", &server_key),
            flag("peer-client-cert-auth", "true"),
            flag("peer-trusted-ca-file", &ca),
            flag("peer-cert-file", &server),
            flag("peer-key-file", &server_key),
        ];
        let probe = Probe { base: health, path: "/readyz".into(), ca_pem: None };
        let process = Process { name: "etcd".into(), program: program.to_owned(), arguments, probe };
        Ok(Self { process, url, ca, certificate, key })
    }

    /// The flags by which an API server finds it.
    pub(crate) fn flags(&self, prefix: &str) -> Vec<String> {
        vec![
            flag("etcd-servers", &self.url),
            flag("etcd-cafile", &self.ca),
            flag("etcd-certfile", &self.certificate),
            flag("etcd-keyfile", &self.key),
            flag("etcd-prefix", format!("/{prefix}")),
        ]
    }
}

impl Plane {
    /// Makes the plane's credentials and command lines. `accounts` come beside the administrator and kube-controller-manager.
    pub(crate) fn prepare(
        folder: &Folder,
        names: &Names<'_>,
        programs: &Programs<'_>,
        etcd: &Etcd,
        [port, controllers_port]: [u16; 2],
        accounts: &[Account],
    ) -> Result<Self, Error> {
        let pki = folder.pki(names.plane);
        files::create_folder(&pki)?;
        let authority = Authority::generate(&format!("{}-ca", names.plane))?;
        let url = format!("https://127.0.0.1:{port}");

        let admin = Account::new("system:admin", "system:masters")?;
        let manager = Account::new(CONTROLLER_MANAGER, "system:authenticated")?;
        let tokens = pki.join("tokens.csv");
        files::write(&tokens, &token_file([&admin, &manager].into_iter().chain(accounts)))?;

        let server = Server {
            url: url.clone(),
            ca_pem: authority.certificate_pem.clone(),
            admin_token: admin.token.clone(),
            audit_log: folder.log(&format!("{}-audit", names.plane)),
            kubeconfig: folder.kubeconfig(names.plane),
            authority: authority.clone(),
        };
        if let Some(parent) = server.kubeconfig.parent() {
            files::create_folder(parent)?;
        }
        write_kubeconfig(&server.kubeconfig, names.plane, &url, &server.ca_pem, &admin.token)?;

        let mut arguments = etcd.flags(names.plane);
        arguments.extend(apiserver(&pki, &authority, port, &tokens, &server.audit_log)?);
        let probe =
            |base: String, path: &str| Probe { base, path: path.into(), ca_pem: Some(server.ca_pem.clone()) };
        let apiserver = Process {
            name: names.apiserver.into(),
            program: programs.apiserver.to_owned(),
            arguments,
            probe: probe(url.clone(), "/readyz"),
        };

        let kubeconfig = pki.join("controller-manager.kubeconfig");
        write_kubeconfig(&kubeconfig, names.plane, &url, &server.ca_pem, &manager.token)?;
        let controllers = Process {
            name: names.controllers.into(),
            program: programs.controllers.to_owned(),
            arguments: controller_manager(&pki, &authority, &kubeconfig, controllers_port)?,
            probe: probe(format!("https://127.0.0.1:{controllers_port}"), "/healthz"),
        };
        Ok(Self { server, apiserver, controllers, pki })
    }

    /// Where its certificates are.
    pub(crate) fn pki(&self) -> &Path {
        &self.pki
    }
}

/// Token, user, uid and groups, a line each. The tokens are base64 and the names are ours: nothing needs quoting but the groups.
fn token_file<'a>(accounts: impl Iterator<Item = &'a Account>) -> String {
    accounts.map(|one| format!("{},{},{},\"{}\"\n", one.token, one.user, one.user, one.groups)).collect()
}

fn apiserver(
    pki: &Path,
    authority: &Authority,
    port: u16,
    tokens: &Path,
    audit_log: &Path,
) -> Result<Vec<String>, Error> {
    let ca = pki.join("ca.crt");
    files::write(&ca, &authority.certificate_pem)?;
    let (serving, serving_key) =
        write_certificate(pki, "apiserver", &authority.server(&["kubernetes.default.svc"])?)?;
    // Whoever holds a certificate of this authority may say that it speaks for anybody: it signs nothing else.
    let front = Authority::generate("front-proxy-ca")?;
    let front_ca = pki.join("front-proxy-ca.crt");
    files::write(&front_ca, &front.certificate_pem)?;
    let (proxy, proxy_key) = write_certificate(pki, "front-proxy", &front.client(FRONT_PROXY, None)?)?;
    let (private, public) = certs::key_pair()?;
    let (private_file, public_file) = (pki.join("service-accounts.key"), pki.join("service-accounts.pub"));
    files::write(&private_file, &private)?;
    files::write(&public_file, &public)?;
    let policy = pki.join("audit-policy.yaml");
    files::write(&policy, AUDIT_POLICY)?;
    Ok(vec![
        flag("bind-address", "127.0.0.1"),
        flag("advertise-address", "127.0.0.1"),
        flag("secure-port", port.to_string()),
        // There is no network behind the service `kubernetes`.
        flag("endpoint-reconciler-type", "none"),
        flag("service-cluster-ip-range", "10.0.0.0/24"),
        flag("tls-cert-file", serving),
        flag("tls-private-key-file", serving_key),
        flag("client-ca-file", &ca),
        flag("token-auth-file", tokens),
        flag("authorization-mode", "RBAC"),
        // Pods need no service account where nothing runs them, and no volume is ever in use.
        flag("disable-admission-plugins", "ServiceAccount,StorageObjectInUseProtection"),
        // Some clusters ask whether who names an owner may finalize it. Who may here may there.
        flag("enable-admission-plugins", "OwnerReferencesPermissionEnforcement"),
        flag("service-account-issuer", "https://kubernetes.default.svc"),
        flag("service-account-key-file", public_file),
        flag("service-account-signing-key-file", private_file),
        flag("requestheader-client-ca-file", front_ca),
        flag("requestheader-allowed-names", FRONT_PROXY),
        flag("requestheader-username-headers", "X-Remote-User"),
        flag("requestheader-group-headers", "X-Remote-Group"),
        flag("requestheader-extra-headers-prefix", "X-Remote-Extra-"),
        flag("proxy-client-cert-file", proxy),
        flag("proxy-client-key-file", proxy_key),
        flag("audit-policy-file", policy),
        flag("audit-log-path", audit_log),
        // In megabytes. Whoever counts requests wants all of them in one file.
        flag("audit-log-maxsize", "100000"),
    ])
}

fn controller_manager(
    pki: &Path,
    authority: &Authority,
    kubeconfig: &Path,
    port: u16,
) -> Result<Vec<String>, Error> {
    let (serving, serving_key) = write_certificate(pki, "controller-manager", &authority.server(&[])?)?;
    Ok(vec![
        flag("kubeconfig", kubeconfig),
        flag("bind-address", "127.0.0.1"),
        flag("secure-port", port.to_string()),
        flag("tls-cert-file", serving),
        flag("tls-private-key-file", serving_key),
        flag("leader-elect", "false"),
        flag("controllers", CONTROLLERS),
        // Each controller is a service account of its own, as in a real cluster: that is what admission and audit logs see.
        flag("use-service-account-credentials", "true"),
        flag("service-account-private-key-file", pki.join("service-accounts.key")),
        flag("root-ca-file", pki.join("ca.crt")),
        // The defaults, 20 and 30, are for a manager that shares its API server with a hundred nodes.
        flag("kube-api-qps", "1000"),
        flag("kube-api-burst", "2000"),
    ])
}

#[cfg(test)]
mod tests;
