//! What people do on any control plane of a project, given nothing but a kubeconfig.

use std::path::Path;
use std::process::{Command, Output, Stdio};

const NAME: &str = "cli-story";

/// Tells the story: deploy, look, change, go back, scale, destroy. Nothing is left behind.
pub fn tell(kubeconfig: &Path, city: &str) {
    let home = tempfile::tempdir().unwrap();
    let run = |line: &str| -> String {
        let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_datumctl-compute"))
            .env_clear()
            .env("HOME", home.path())
            .env("KUBECONFIG", kubeconfig)
            .env("DATUMCTL_COMPUTE_REQUEST_TIMEOUT", "300s")
            .args(line.split_whitespace())
            .current_dir(home.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&stderr), String::from_utf8_lossy(&stdout));
        assert!(status.success(), "{line}: {status}\n{text}");
        text
    };
    let shows = |text: String, part: &str| assert!(text.contains(part), "no {part:?} in:\n{text}");

    shows(run("cities -o name"), city);
    run("quota");
    let image = "ghcr.io/example/web:1.0";
    shows(
        run(&format!("deploy {NAME} --image {image} --city {city} --min 2 --dry-run")),
        "Nothing was written",
    );
    shows(run(&format!("deploy {NAME} --image {image} --city {city} --min 2")), "2 Available");
    shows(run(&format!("status {NAME}")), "all 2 instances ready");
    shows(run(&format!("explain {NAME}")), "Nothing is in the way");
    shows(run(&format!("instances --workload {NAME} -o name")), NAME);
    shows(run(&format!("deploy {NAME} --env MODE=fast")), "env MODE added");
    shows(run(&format!("rollout undo {NAME}")), "env MODE removed");
    shows(run(&format!("scale {NAME} --min 1")), "1 instance: 1 Available");
    let history = run(&format!("rollout history {NAME} -o json"));
    let history: Vec<serde_json::Value> = serde_json::from_str(&history).unwrap();
    let actions: Vec<_> = history.iter().map(|one| one["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["deploy", "deploy", "undo to revision 1", "scale"]);
    assert!(history.iter().all(|one| one["by"].is_string()), "{history:#?}");
    shows(run(&format!("destroy {NAME} -y")), "is gone");
    assert!(!run("workloads -o name").contains(NAME));
}
