//! A platform in this process, served over TLS as a real one is, and the real program as a child.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use compute_api::quota::{AllowanceAmount, AllowanceBucket, RESOURCE_INSTANCES, ResourceGrant};
use compute_apiserver::{Access, ApiServer, Authority, Identity, Options, Tls};
use compute_local::{Platform, Settings, planes, workers};
use compute_runtime::Runtime;
use compute_runtime::tasks::Tasks;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

/// How long a command may take, on a machine that has much else to do.
pub const DEADLINE: Duration = Duration::from_secs(600);
/// How long a server may take to answer on such a machine.
pub const PATIENT: &str = "300s";

/// How often it is looked for what is waited for.
pub const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A running platform with a project `demo`.
pub struct Local {
    pub server: ApiServer,
    pub platform: Platform,
    pub dir: tempfile::TempDir,
    pub url: String,
    pub authority: String,
    stop: CancellationToken,
}

/// What a command came to.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// Fails the test unless the command ended like that.
    #[track_caller]
    pub fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// Fails the test unless the result has this in it.
    #[track_caller]
    pub fn shows(self, text: &str) -> Self {
        assert!(self.out.contains(text), "no {text:?} in stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// Fails the test unless it said this.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(self.err.contains(text), "no {text:?} in stderr:\n{}\nstdout:\n{}", self.err, self.out);
        self
    }
}

impl Local {
    /// A platform whose instances take a moment to start.
    pub async fn start() -> Self {
        Self::with(Settings { start_delay: Duration::from_millis(50), ..Settings::default() }).await
    }

    /// A platform that takes its time to enable the service for who asks for it.
    pub async fn start_unhurried() -> Self {
        Self::with(Settings { entitle_after: Duration::from_secs(24 * 3600), ..Settings::default() }).await
    }

    async fn with(settings: Settings) -> Self {
        // A project that has to wait for the service is not ready to be used, but it is there.
        let enables = settings.entitle_after.is_zero();
        let server = ApiServer::new(Options { routes: vec![planes::project_route()], ..Options::default() });
        let platform = Platform::new(&server, Runtime::system(), settings).await.unwrap();
        let authority = Authority::generate("test").unwrap();
        let issued = authority.issue_server(&["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        let tls = Tls::from_pem(&issued.certificate, &issued.key).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let mut tasks = Tasks::new();
        platform.spawn_all(&mut tasks);
        let at = server.clone();
        tasks.spawn("the API server", |stop| {
            compute_apiserver::serve(at, listener, tls, stop.cancelled_owned())
        });
        let stop = tasks.stop_token();
        tokio::spawn(tasks.run(std::future::pending(), Duration::from_secs(5)));
        match enables {
            true => platform.make_project("demo").await.unwrap(),
            false => platform.make_idle_project("demo").await.unwrap(),
        }
        let dir = tempfile::tempdir().unwrap();
        let authority = authority.certificate().to_owned();
        let local = Self { server, platform, dir, url, authority, stop };
        for person in ["ann", "bob"] {
            local.let_in(person, &format!("token-of-{person}"));
            std::fs::write(local.kubeconfig(person), local.kubeconfig_text(person)).unwrap();
        }
        std::fs::write(local.dir.path().join("ca.pem"), &local.authority).unwrap();
        local
    }

    /// Makes a token good for somebody who may do everything in the project.
    pub fn let_in(&self, person: &str, token: &str) {
        let identity = Identity::user(person).in_group(workers::PROJECT_ADMINS);
        self.server.tokens().add(token, identity, Access::Planes([planes::project("demo").unwrap()].into()));
    }

    /// Lets somebody in who may read workloads and what runs of them, and nothing else.
    pub async fn look_only(&self, person: &str) {
        let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": person },
            "rules": [{ "apiGroups": ["compute.datumapis.com"], "verbs": ["get", "list"],
                "resources": ["workloads", "workloaddeployments", "instances"] }] });
        let binding = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": { "name": person }, "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": person }],
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": person } });
        let (role, binding) =
            (serde_json::from_value(role).unwrap(), serde_json::from_value(binding).unwrap());
        Api::<ClusterRole>::all(self.client()).create(&PostParams::default(), &role).await.unwrap();
        Api::<ClusterRoleBinding>::all(self.client()).create(&PostParams::default(), &binding).await.unwrap();
        let demo = Access::Planes([planes::project("demo").unwrap()].into());
        self.server.tokens().add(&format!("token-of-{person}"), Identity::user(person), demo);
        std::fs::write(self.kubeconfig(person), self.kubeconfig_text(person)).unwrap();
    }

    pub fn kubeconfig(&self, person: &str) -> PathBuf {
        self.dir.path().join(format!("{person}.yaml"))
    }

    fn kubeconfig_text(&self, person: &str) -> String {
        let url = planes::url(&self.url, &planes::project("demo").unwrap());
        let ca = base64::engine::general_purpose::STANDARD.encode(&self.authority);
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "project-demo",
            "clusters": [{ "name": "demo", "cluster": { "server": url, "certificate-authority-data": ca } }],
            "users": [{ "name": person, "user": { "token": format!("token-of-{person}") } }],
            "contexts": [{ "name": "project-demo", "context": { "cluster": "demo", "user": person, "namespace": "default" } }],
        })
        .to_string()
    }

    /// Leaves word of itself as `compute-local up` does, for who has no configuration at all.
    pub fn be_found(&self) {
        let data = self.dir.path().join(".local/share/compute-local");
        std::fs::create_dir_all(&data).unwrap();
        std::fs::copy(self.kubeconfig("ann"), data.join("kubeconfig")).unwrap();
        std::fs::write(data.join("running.json"), "{}").unwrap();
    }

    /// A client for the project whom nothing holds back.
    pub fn client(&self) -> kube::Client {
        self.platform.client(&planes::project("demo").unwrap())
    }

    /// Lets the project have so many instances.
    pub async fn limit(&self, count: i64) {
        let grants: Api<ResourceGrant> = Api::namespaced(self.client(), compute_platform::quota::NAMESPACE);
        for mut grant in grants.list(&ListParams::default()).await.unwrap().items {
            for allowance in &mut grant.spec.allowances {
                if allowance.resource_type == RESOURCE_INSTANCES {
                    allowance.buckets = vec![AllowanceAmount { amount: count }];
                }
            }
            let name = grant.metadata.name.clone().unwrap();
            grants.replace(&name, &PostParams::default(), &grant).await.unwrap();
        }
        let deadline = tokio::time::Instant::now() + DEADLINE;
        let buckets: Api<AllowanceBucket> = Api::all(self.client());
        while !buckets.list(&ListParams::default()).await.unwrap().items.iter().any(|bucket| {
            bucket.spec.resource_type == RESOURCE_INSTANCES
                && bucket.status.as_ref().is_some_and(|status| status.limit == count)
        }) {
            assert!(tokio::time::Instant::now() < deadline, "the limit is not taken up");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Runs a command as ann.
    pub async fn run(&self, line: &str) -> Ran {
        self.run_as("ann", line).await
    }

    /// Runs a command as somebody.
    pub async fn run_as(&self, person: &str, line: &str) -> Ran {
        let mut command = bare(self.dir.path());
        // A machine that is busy with many tests answers late.
        command.env("DATUMCTL_COMPUTE_REQUEST_TIMEOUT", PATIENT);
        // Before the test gives up, the program says how far it is.
        command.env("DATUMCTL_COMPUTE_TIMEOUT", "500s");
        command.env("KUBECONFIG", self.kubeconfig(person)).args(line.split_whitespace());
        ended(command).await
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The program with nothing of this machine's in its environment.
pub fn bare(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_datumctl-compute"));
    command.env_clear().env("HOME", home).env("PATH", std::env::var_os("PATH").unwrap()).current_dir(home);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// Runs a command to its end.
pub async fn ended(mut command: Command) -> Ran {
    let output = tokio::time::timeout(DEADLINE, command.output()).await.expect("the command ends").unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}
