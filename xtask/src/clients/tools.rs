//! The clients: found or made. Never skipped: what can be neither found nor made is an error.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::server::Server;

/// The oldest minor version of kubectl 1 that is good enough.
const OLDEST_MINOR: u32 = 32;
/// What is built if there is none: the minor version whose API the server offers. Kubernetes 1.x.y publishes
/// its Go modules as 0.x.y.
const BUILT_MINOR: u32 = 35;
const BUILT_PATCH: u32 = 10;
/// Set to `build`, it leaves a kubectl on PATH alone.
const CHOICE: &str = "COMPUTE_KUBECTL";
/// The Python client, from PyPI.
pub(crate) const PYTHON_CLIENT: &str = "35.0.0";

/// A kubectl.
pub(crate) struct Kubectl {
    /// The program.
    pub(crate) program: PathBuf,
    /// What it says it is, such as `v1.35.0`.
    pub(crate) version: String,
}

impl Kubectl {
    /// A command that talks to `server`, with no setting of the person who runs this.
    pub(crate) fn command(&self, server: &Server) -> Command {
        let mut command = Command::new(&self.program);
        command.env("HOME", server.home()).env("KUBECONFIG", server.kubeconfig()).env("LC_ALL", "C");
        // Copies of edits that were refused go with the server.
        command.env("TMPDIR", server.home());
        for name in
            ["KUBECACHEDIR", "KUBE_EDITOR", "EDITOR", "KUBECTL_EXTERNAL_DIFF", "HTTPS_PROXY", "https_proxy"]
        {
            command.env_remove(name);
        }
        command
    }
}

/// Finds a kubectl on PATH that is new enough, else builds one.
pub(crate) fn kubectl() -> Result<Kubectl> {
    match std::env::var(CHOICE).as_deref() {
        Ok("build") => build_kubectl(),
        Ok(other) if !other.is_empty() => bail!("{CHOICE} is {other:?}; the only value is \"build\""),
        _ => match version_of(Path::new("kubectl")) {
            Ok((version, minor)) if minor >= OLDEST_MINOR => {
                Ok(Kubectl { program: "kubectl".into(), version })
            }
            Ok((version, _)) => {
                println!("kubectl {version} is older than 1.{OLDEST_MINOR}");
                build_kubectl()
            }
            Err(_) => build_kubectl(),
        },
    }
}

/// The version of a kubectl 1, and the minor part of it.
fn version_of(program: &Path) -> Result<(String, u32)> {
    let output = Command::new(program).args(["version", "--client", "--output=json"]).output()?;
    ensure!(output.status.success(), "kubectl does not tell its version");
    let version: Value = serde_json::from_slice(&output.stdout)?;
    let version = &version["clientVersion"];
    let text = |key: &str| version[key].as_str().unwrap_or_default();
    ensure!(text("major") == "1", "kubectl has major version {:?}", text("major"));
    // Vendors mark their builds by a suffix: "32+".
    let digits: String = text("minor").chars().take_while(char::is_ascii_digit).collect();
    Ok((text("gitVersion").to_owned(), digits.parse()?))
}

/// Builds kubectl from its Go modules. Kept, by version, until `target` is removed.
fn build_kubectl() -> Result<Kubectl> {
    let version = format!("v1.{BUILT_MINOR}.{BUILT_PATCH}");
    let directory = cache("kubectl").join(&version);
    let program = directory.join("kubectl");
    if !program.exists() {
        println!("building kubectl {version}; this takes some minutes");
        std::fs::create_dir_all(&directory)?;
        let module = format!("v0.{BUILT_MINOR}.{BUILT_PATCH}");
        std::fs::write(
            directory.join("go.mod"),
            format!(
                "module kubectl\n\ngo 1.25.0\n\n\
                 require (\n\tk8s.io/component-base {module}\n\tk8s.io/kubectl {module}\n)\n"
            ),
        )?;
        std::fs::write(directory.join("main.go"), MAIN_GO)?;
        let stamp = |name: &str, value: &str| format!("-X k8s.io/component-base/version.{name}={value}");
        let flags = [
            "-s -w".to_owned(),
            stamp("gitVersion", &version),
            stamp("gitMajor", "1"),
            stamp("gitMinor", &BUILT_MINOR.to_string()),
        ];
        // Under another name until it is whole: a build that is stopped must not look like one that is done.
        let unfinished = directory.join("kubectl.unfinished");
        let mut go = Command::new("go");
        go.args(["build", "-mod=mod", "-trimpath", "-ldflags", &flags.join(" "), "-o"])
            .arg(&unfinished)
            .arg(".");
        let status = go.current_dir(&directory).status();
        let status = status.with_context(|| {
            format!("no kubectl of 1.{OLDEST_MINOR} or newer on PATH, and no Go to build one")
        })?;
        ensure!(status.success(), "kubectl {version} does not build");
        std::fs::rename(unfinished, &program)?;
    }
    let (found, _) = version_of(&program)?;
    ensure!(found == version, "the kubectl that was built calls itself {found}, not {version}");
    Ok(Kubectl { program, version })
}

const MAIN_GO: &str = r#"// Command kubectl is the stock kubectl, put together from its published modules.
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
"#;

/// A Python that has the client. Kept, by version, until `target` is removed.
pub(crate) fn python() -> Result<PathBuf> {
    let directory = cache("python").join(PYTHON_CLIENT);
    let python = directory.join("bin").join("python");
    // Written last: an installation that was stopped half-way is made anew.
    let complete = directory.join("complete");
    if !complete.exists() {
        println!("installing the Python client {PYTHON_CLIENT}");
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv", "--clear"]).arg(&directory);
        succeed(&mut venv, "cannot make a Python environment")?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip.arg(format!("kubernetes=={PYTHON_CLIENT}"));
        succeed(&mut pip, "cannot install the Python client")?;
        std::fs::write(complete, "")?;
    }
    Ok(python)
}

fn succeed(command: &mut Command, otherwise: &'static str) -> Result<()> {
    let status = command.status().context(otherwise)?;
    ensure!(status.success(), otherwise);
    Ok(())
}

fn cache(tool: &str) -> PathBuf {
    crate::root().join("target").join("xtask").join(tool)
}
