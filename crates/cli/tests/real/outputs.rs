//! What the whole program says, command by command: into a file, and on a terminal of 60 columns with `NO_COLOR`. The snapshots are beside
//! those of views, and linted with them.

use std::path::Path;

use crate::support::{Local, Ran};
use crate::terminal::Terminal;
use regex::Regex;

/// Commands in their order, each with the name of its snapshot. Those without one only bring about what comes next.
const SCRIPT: [(&str, &str); 48] = [
    ("error.nothing-given", "deploy"),
    ("error.needs-both", "deploy web"),
    ("error.needs-city", "deploy web --image ghcr.io/example/web:1.0"),
    ("error.needs-image", "deploy web --city DFW"),
    ("error.no-such-city", "deploy web --image ghcr.io/example/web:1.0 --city ATL"),
    ("deploy-dry-run", "deploy web --image ghcr.io/example/web:1.0 --city DFW,IAD --min 2 --dry-run"),
    ("deploy", "deploy web --image ghcr.io/example/web:1.0 --city DFW,IAD --min 2 --port 80"),
    ("deploy-nothing", "deploy web --image ghcr.io/example/web:1.0"),
    ("error.nothing-to-undo", "rollout undo web"),
    ("scale", "scale web --min 1 --max 4"),
    ("scale-nothing", "scale web --min 1 --max 4"),
    ("error.min-over-max", "scale web --min 5"),
    ("error.shared-placement", "scale web --min 2 --city DFW"),
    ("error.no-placement", "scale web --min 2 --placement edge"),
    ("error.scale-elsewhere", "scale web --min 2 --city LHR"),
    ("deploy-change", "deploy web --image ghcr.io/example/web:1.1 --env MODE=fast"),
    ("deploy-no-wait", "deploy web --env MODE=slow --no-wait"),
    ("rollout-status", "rollout status web --watch"),
    ("restart", "rollout restart web"),
    ("restart-city", "rollout restart web --city iad"),
    ("error.restart-elsewhere", "rollout restart web --city LHR"),
    ("pause", "rollout pause web"),
    ("pause-again", "rollout pause web"),
    ("error.restart-paused", "rollout restart web"),
    ("deploy-paused", "deploy web --image ghcr.io/example/web:1.2"),
    ("resume", "rollout resume web"),
    ("resume-again", "rollout resume web"),
    ("history-of-all", "rollout history web"),
    ("error.no-such-revision", "rollout undo web --to-revision 99"),
    ("deploy-broken", "deploy web --image registry.invalid/web:2.0"),
    ("undo", "rollout undo web"),
    ("undo-far", "rollout undo web --to-revision 1"),
    ("access", "access"),
    ("error.no-workload", "status wbe"),
    ("error.no-instance", "instances describe web-main-dfw-9"),
    ("error.no-workload-to-list", "instances --workload shop"),
    ("error.no-file", "deploy -f none.yaml"),
    ("error.nobody-to-ask", "deploy -f new.yaml </dev/null"),
    ("deploy-file-dry-run", "deploy -f new.yaml --dry-run"),
    ("deploy-file", "deploy -f new.yaml -y"),
    ("deploy-file-nothing", "deploy -f new.yaml -y"),
    ("error.other-namespace", "deploy -f elsewhere.yaml -y"),
    ("error.no-quota", "deploy web --min 3 --dry-run"),
    ("error.no-context", "cities --context nope"),
    ("error.no-project", "instances --project Bad_Name%"),
    ("error.no-kubeconfig", "cities --kubeconfig none.yaml"),
    ("error.destroy-unasked", "destroy web </dev/null"),
    ("destroy", "destroy web -y"),
];

/// A text without what differs from run to run: times, addresses, the steps of a rollout, and the table of instances, which has snapshots of its own.
fn steady(text: &str) -> String {
    let mut text = text.to_owned();
    for (pattern, with) in [
        (r"(?m)^NAME  +CITY[\s\S]*?^\d+ instances?:", "(instances)\n"),
        (r"(?m)^\(instances\)\n .*$", "(instances)"),
        (r"(?m)^  \S+  (waiting|updating|blocked|paused|done|leaving) .*\n(      .*\n)*", ""),
        (r"(?m)^(\d+ instances? left to stop|giving back .*|clearing up)\n", ""),
        (r"WHEN +", "WHEN      "),
        (r"(just now|\d+ (second|minute)s? ago) +", "just now  "),
        (r"(?m)[ \t]+$", ""),
        (r"^\n+", ""),
        (r"\n{3,}", "\n\n"),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, with).into_owned();
    }
    text.trim_end().to_owned() + "\n"
}

/// An error without what was said before it.
fn only_error(text: &str) -> String {
    text.find("error: ").map_or(text, |at| &text[at..]).to_owned()
}

fn shot(name: &str, form: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_snapshot_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots"));
    settings.bind(|| insta::assert_snapshot!(format!("{name}.{form}"), steady(text)));
}

async fn platform() -> Local {
    let local = Local::start().await;
    // Enough for what is deployed, and no more than that.
    local.limit(9).await;
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/samples");
    let sample = std::fs::read_to_string(format!("{samples}/workload.yaml")).unwrap();
    let new = sample.replace("name: hello\n", "name: shop\n");
    // A config of the same name is beside it, as manifests often have one.
    let config = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {mode: fast}\n";
    std::fs::write(local.dir.path().join("new.yaml"), format!("{new}{config}")).unwrap();
    let elsewhere = new.replacen("name: shop\n", "name: shop\n  namespace: other\n", 1);
    std::fs::write(local.dir.path().join("elsewhere.yaml"), elsewhere).unwrap();
    local
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn into_a_file() {
    let local = platform().await;
    for (name, line) in SCRIPT {
        let Ran { code, out, err } = local.run(line.trim_end_matches("</dev/null")).await;
        assert!((name.starts_with("error.") || name == "deploy-broken") == (code != 0), "{line}: {out}{err}");
        let text = match name.starts_with("error.") {
            true => only_error(&err),
            false => format!("{err}{out}"),
        };
        shot(name, "whole", &text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_narrow_terminal() {
    let local = platform().await;
    std::fs::write(local.dir.path().join("workload.yaml"), "").unwrap();
    let terminal = Terminal::open(&local, 60, 50).await;
    terminal.run("export NO_COLOR=1", &[]).await;
    let code = Regex::new(r"\(exit code \d\)\n").unwrap();
    for (name, line) in SCRIPT {
        // Somebody is there, and is not asked here what to deploy; how much of a history fits depends on when it was.
        if name == "error.nothing-given" || name == "history-of-all" {
            continue;
        }
        let shown = terminal.run(&format!("datumctl-compute {line}"), &[]).await;
        let shown = code.replace(&shown, "").into_owned();
        let shown = if name.starts_with("error.") { only_error(&shown) } else { shown };
        shot(name, "narrow", &shown);
    }
}
