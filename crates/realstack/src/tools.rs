//! The programs that the stack runs, built from the Go modules in `tools/realstack` and cached by version.
//!
//! | folder of `tools/realstack` | what it names |
//! | --- | --- |
//! | `etcd` | etcd |
//! | `karmada` | Karmada's four programs; its CRDs, webhook configuration and RBAC are copied out of the module |
//! | `kubernetes-1.NN` | the Kubernetes of that minor; each such folder is a minor that the stack runs |
//!
//! # Guarantees
//!
//! What is in the cache under its final name is whole: programs are built in a folder beside it, which is renamed last. The name carries
//! versions and a digest of all that goes into the build, so a changed pin is another entry.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest as _, Sha256};

use crate::state::Versions;
use crate::{Error, Say, files};

/// The Kubernetes minor that runs unless another is asked for.
pub const DEFAULT_KUBERNETES: &str = "1.35";

/// Changes when the way of building does.
const RECIPE: &str = "1";

/// All programs of one stack.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) versions: Versions,
    etcd: PathBuf,
    kubernetes: PathBuf,
    karmada: PathBuf,
}

impl Tools {
    /// A program by the name of its file.
    pub(crate) fn etcd(&self) -> PathBuf {
        self.etcd.join("etcd")
    }

    pub(crate) fn kubernetes(&self, program: &str) -> PathBuf {
        self.kubernetes.join(program)
    }

    pub(crate) fn karmada(&self, program: &str) -> PathBuf {
        self.karmada.join(program)
    }

    /// Karmada's own files, as they lie in its module.
    pub(crate) fn manifests(&self) -> PathBuf {
        self.karmada.join("manifests")
    }
}

/// One Go module of ours and what is built from it.
struct Set {
    /// Its folder, which is also the first part of the cache entry's name.
    folder: PathBuf,
    name: &'static str,
    version: String,
    /// Package and program.
    programs: &'static [(&'static str, &'static str)],
    /// Variables that the linker sets, so that a program tells its own version.
    variables: Vec<(String, String)>,
    /// The module whose files are copied, and which.
    files: Option<(&'static str, &'static [&'static str])>,
}

const ETCD: &str = "go.etcd.io/etcd/server/v3";
const KARMADA: &str = "github.com/karmada-io/karmada";
const KUBERNETES: &str = "k8s.io/kubernetes";

const ETCD_PROGRAMS: &[(&str, &str)] = &[("go.etcd.io/etcd/server/v3", "etcd")];
const KARMADA_PROGRAMS: &[(&str, &str)] = &[
    ("github.com/karmada-io/karmada/cmd/aggregated-apiserver", "karmada-aggregated-apiserver"),
    ("github.com/karmada-io/karmada/cmd/controller-manager", "karmada-controller-manager"),
    ("github.com/karmada-io/karmada/cmd/scheduler", "karmada-scheduler"),
    ("github.com/karmada-io/karmada/cmd/webhook", "karmada-webhook"),
];
const KUBERNETES_PROGRAMS: &[(&str, &str)] = &[
    ("k8s.io/kubernetes/cmd/kube-apiserver", "kube-apiserver"),
    ("k8s.io/kubernetes/cmd/kube-controller-manager", "kube-controller-manager"),
    ("k8s.io/kubernetes/cmd/kubectl", "kubectl"),
];
/// Karmada's files that the hub needs.
const KARMADA_FILES: &[&str] = &[
    "charts/karmada/_crds",
    "artifacts/deploy/webhook-configuration.yaml",
    "artifacts/deploy/admin-clusterrole-aggregation.yaml",
    "artifacts/deploy/cluster-proxy-admin-rbac.yaml",
];

/// The Kubernetes minors that there are, lowest first.
pub(crate) fn minors(modules: &Path) -> Result<Vec<String>, Error> {
    let mut minors = Vec::new();
    for entry in fs::read_dir(modules).map_err(Error::file("read", modules))? {
        let name = entry.map_err(Error::file("read", modules))?.file_name();
        if let Some(minor) = name.to_str().and_then(|name| name.strip_prefix("kubernetes-")) {
            minors.push(minor.to_owned());
        }
    }
    minors.sort_by_key(|minor| minor.rsplit('.').next().and_then(|last| last.parse::<u32>().ok()));
    Ok(minors)
}

/// Finds the programs in the cache, and builds those that are not there.
pub(crate) fn ensure(modules: &Path, cache: &Path, minor: &str, say: &Say) -> Result<Tools, Error> {
    let known = minors(modules)?;
    if !known.iter().any(|one| one == minor) {
        return Err(Error::UnknownMinor { asked: minor.to_owned(), known: known.join(" and ") });
    }
    let etcd = Set::read(modules.join("etcd"), "etcd", ETCD, ETCD_PROGRAMS)?;
    let mut karmada = Set::read(modules.join("karmada"), "karmada", KARMADA, KARMADA_PROGRAMS)?;
    karmada.variables.push((format!("{KARMADA}/pkg/version.gitVersion"), karmada.version.clone()));
    karmada.files = Some((KARMADA, KARMADA_FILES));
    let folder = modules.join(format!("kubernetes-{minor}"));
    let mut kubernetes = Set::read(folder, "kubernetes", KUBERNETES, KUBERNETES_PROGRAMS)?;
    for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
        let (major, minor) = minor.split_once('.').unwrap_or((minor, "0"));
        for (name, value) in
            [("gitVersion", kubernetes.version.as_str()), ("gitMajor", major), ("gitMinor", minor)]
        {
            kubernetes.variables.push((format!("{package}.{name}"), value.to_owned()));
        }
    }
    Ok(Tools {
        etcd: etcd.ensure(cache, say)?,
        kubernetes: kubernetes.ensure(cache, say)?,
        karmada: karmada.ensure(cache, say)?,
        versions: Versions { kubernetes: kubernetes.version, karmada: karmada.version, etcd: etcd.version },
    })
}

impl Set {
    fn read(
        folder: PathBuf,
        name: &'static str,
        module: &str,
        programs: &'static [(&'static str, &'static str)],
    ) -> Result<Self, Error> {
        let path = folder.join("go.mod");
        let text = fs::read_to_string(&path).map_err(Error::file("read", &path))?;
        let version = required(&text, module)
            .ok_or_else(|| Error::Malformed { path, why: format!("it does not require {module}") })?;
        Ok(Self { folder, name, version: version.to_owned(), programs, variables: Vec::new(), files: None })
    }

    fn linker_flags(&self) -> String {
        let variables = self.variables.iter().map(|(name, value)| format!(" -X {name}={value}"));
        format!("-ldflags=-s -w{}", variables.collect::<String>())
    }

    /// The name of its cache entry.
    fn key(&self) -> Result<String, Error> {
        let mut digest = Sha256::new();
        digest.update(RECIPE);
        digest.update(self.linker_flags());
        for file in ["go.mod", "go.sum"] {
            let path = self.folder.join(file);
            digest.update(fs::read(&path).map_err(Error::file("read", &path))?);
        }
        let digest: String = digest.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        Ok(format!("{}-{}-{digest}", self.name, self.version))
    }

    /// The folder with its programs.
    fn ensure(&self, cache: &Path, say: &Say) -> Result<PathBuf, Error> {
        let finished = cache.join(self.key()?);
        if finished.is_dir() {
            return Ok(finished);
        }
        files::create_folder(cache)?;
        let _lock = lock(cache, say)?;
        if finished.is_dir() {
            return Ok(finished);
        }
        let partial = cache.join("building");
        files::remove(&partial)?;
        files::create_folder(&partial)?;
        say(&format!("building {} {} (only once; it takes minutes)", self.name, self.version));
        for (package, program) in self.programs {
            say(&format!("  {program}"));
            let output = partial.join(program);
            let mut go = self.go(&["build", "-trimpath", &self.linker_flags(), "-o"]);
            go.arg(output).arg(package);
            self.run(go, program)?;
        }
        if let Some((module, names)) = self.files {
            let mut go = self.go(&["list", "-m", "-f", "{{.Dir}}", module]);
            go.stdout(Stdio::piped());
            let root = PathBuf::from(self.run(go, module)?.trim());
            for name in names {
                copy(&root.join(name), &partial.join("manifests").join(name))?;
            }
        }
        fs::rename(&partial, &finished).map_err(Error::file("write", &finished))?;
        Ok(finished)
    }

    /// Go as it has to run whatever the surroundings say: this module and no workspace, and no C compiler.
    fn go(&self, arguments: &[&str]) -> Command {
        let mut go = Command::new("go");
        go.args(arguments)
            .current_dir(&self.folder)
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off")
            .env("GOFLAGS", "-mod=readonly");
        go.stdin(Stdio::null()).stdout(Stdio::null());
        go
    }

    fn run(&self, mut go: Command, what: &str) -> Result<String, Error> {
        let shown =
            format!("go {}", go.get_args().map(|one| one.to_string_lossy()).collect::<Vec<_>>().join(" "));
        let failed = |status: String| Error::Go { command: shown.clone(), status };
        let child = match go.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::NoGo { program: what.to_owned() });
            }
            Err(error) => return Err(failed(error.to_string())),
        };
        let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
        if !output.status.success() {
            return Err(failed(output.status.to_string()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// One build at a time in a cache.
fn lock(cache: &Path, say: &Say) -> Result<File, Error> {
    let path = cache.join("lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(Error::file("open", &path))?;
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        say("another build fills the cache; waiting for it");
        file.lock().map_err(Error::file("lock", &path))?;
    }
    Ok(file)
}

/// The version of a module that a `go.mod` requires.
fn required<'a>(text: &'a str, module: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let mut words = line.trim().trim_start_matches("require ").split_whitespace();
        (words.next()? == module).then(|| words.next()).flatten().filter(|version| version.starts_with('v'))
    })
}

/// Copies a file or a folder; what comes out of the module cache is read-only, the copy is not.
fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    if from.is_dir() {
        for entry in fs::read_dir(from).map_err(Error::file("read", from))? {
            let entry = entry.map_err(Error::file("read", from))?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        files::create_folder(parent)?;
    }
    let content = fs::read(from).map_err(Error::file("read", from))?;
    fs::write(to, content).map_err(Error::file("write", to))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn modules() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tools/realstack")
    }

    fn quiet() -> Say {
        Arc::new(|_| {})
    }

    #[test]
    fn a_go_mod_tells_a_version() {
        let text = "module x\n\ntool a/b\n\nrequire a/b/c v9.9.9\nrequire (\n\tother v0.1.0\n\ta/b v1.2.3 // indirect\n)\n\nreplace a/b => c v3.0.0\n";
        assert_eq!(required(text, "a/b"), Some("v1.2.3"));
        assert_eq!(required(text, "a/b/c"), Some("v9.9.9"));
        assert_eq!(required(text, "a"), None);
    }

    #[test]
    fn two_minors_are_pinned_with_their_own_libraries() {
        let minors = minors(&modules()).unwrap();
        assert_eq!(minors, ["1.34", "1.35"]);
        for minor in minors {
            let folder = modules().join(format!("kubernetes-{minor}"));
            let text = fs::read_to_string(folder.join("go.mod")).unwrap();
            let version = required(&text, KUBERNETES).unwrap();
            let patch = version.strip_prefix(&format!("v{minor}.")).unwrap();
            let library = format!("v0{}.{patch}", minor.strip_prefix('1').unwrap());
            let replaced: Vec<_> = text.lines().filter(|line| line.contains("=>")).collect();
            assert!(replaced.len() > 20);
            assert!(replaced.iter().all(|line| line.ends_with(&library)), "{library}: {replaced:#?}");
        }
    }

    #[test]
    fn every_program_is_named_as_a_tool() {
        let sets = [
            ("etcd", ETCD_PROGRAMS),
            ("karmada", KARMADA_PROGRAMS),
            ("kubernetes-1.35", KUBERNETES_PROGRAMS),
            ("kubernetes-1.34", KUBERNETES_PROGRAMS),
        ];
        for (folder, programs) in sets {
            let text = fs::read_to_string(modules().join(folder).join("go.mod")).unwrap();
            for (package, _) in programs {
                let named =
                    text.lines().any(|line| line.trim().trim_start_matches("tool ").trim() == *package);
                assert!(named, "{folder} does not name {package}");
            }
        }
    }

    #[test]
    fn an_unknown_minor_is_refused_with_those_that_there_are() {
        let cache = tempfile::tempdir().unwrap();
        let error = ensure(&modules(), cache.path(), "1.12", &quiet()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Kubernetes 1.12 is not one that the stack runs; it runs 1.34 and 1.35"
        );
    }

    /// A set whose only package does not exist, so that Go refuses at once.
    fn broken(folder: &Path) -> Set {
        fs::write(folder.join("go.mod"), "module x\n\ngo 1.21\n\nrequire a/b v1.0.0\n").unwrap();
        fs::write(folder.join("go.sum"), "").unwrap();
        Set::read(folder.to_owned(), "broken", "a/b", &[("x/none", "none")]).unwrap()
    }

    #[test]
    fn a_build_that_fails_leaves_nothing_that_looks_finished() {
        let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let set = broken(folder.path());
        let error = set.ensure(cache.path(), &quiet()).unwrap_err();
        assert!(matches!(error, Error::Go { .. } | Error::NoGo { .. }), "{error}");
        assert!(!cache.path().join(set.key().unwrap()).exists());
    }

    #[test]
    fn what_is_in_the_cache_is_not_built_again_and_a_changed_pin_is() {
        let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let set = broken(folder.path());
        let finished = cache.path().join(set.key().unwrap());
        fs::create_dir(&finished).unwrap();
        assert_eq!(set.ensure(cache.path(), &quiet()).unwrap(), finished);
        let before = set.key().unwrap();
        fs::write(folder.path().join("go.sum"), "a/b v1.0.0 h1:x\n").unwrap();
        assert_ne!(set.key().unwrap(), before);
    }
}
