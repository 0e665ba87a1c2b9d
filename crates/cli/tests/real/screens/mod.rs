//! The pictures in `docs/screens` show what a terminal really showed: each is taken again, and the text in it is compared.
//!
//! `cargo xtask cli-screens` takes them anew. Nothing is drawn by hand.

mod svg;

use std::path::Path;

use crate::support::Local;
use crate::terminal::Terminal;
use crate::tour::essence;
use regex::Regex;

const COLUMNS: usize = 100;
const ROWS: usize = 40;

/// A workload that takes its time to start, so that there is something to see.
const SLOW: &str = "apiVersion: compute.datumapis.com/v1alpha
kind: Workload
metadata: {name: web}
spec:
  template:
    metadata: {annotations: {simulated.datumapis.com/start-delay: 2s}}
    spec:
      runtime:
        resources: {instanceType: datumcloud/d1-standard-2}
        sandbox: {containers: [{name: app, image: ghcr.io/example/web:1.0}]}
      networkInterfaces: [{network: {name: default}}]
  placements:
  - {name: main, cityCodes: [DFW, IAD, LHR], scaleSettings: {minReplicas: 3}}
";

/// Keeps a picture, or compares it with the one that is kept.
fn shot(name: &str, picture: &str, form: impl Fn(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/screens/{name}.svg"));
    let drawn = svg::draw(picture, COLUMNS);
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let (now, then) = (form(&svg::text(&drawn)), form(&svg::text(&kept)));
    if std::env::var_os("UPDATE_SCREENS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, drawn).unwrap();
        return;
    }
    assert_eq!(now, then, "docs/screens/{name}.svg is stale: run `cargo xtask cli-screens`");
}

/// What is the same of a moment: all but how far each city is just then.
fn moment(text: &str) -> String {
    let mut text = text.to_owned();
    for (pattern, with) in [
        (r"(?m)^[^\x00-\x7f] web:", "web:"),
        ("waiting|updating|done", "going"),
        ("[●○]+", "marks"),
        (r"\d+", "n"),
        ("(?m)^$\n", ""),
        ("  +", "  "),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, with).into_owned();
    }
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pictures_are_what_a_terminal_shows() {
    let local = Local::start().await;
    std::fs::write(local.dir.path().join("slow.yaml"), SLOW).unwrap();
    let terminal = Terminal::open(&local, COLUMNS, ROWS).await;

    terminal.type_line("datumctl-compute deploy -f slow.yaml -y").await;
    terminal.until("a city on its way", |text| text.contains("2/3 ready")).await;
    shot("rollout", &terminal.picture(), moment);
    terminal.until("the end", |text| text.contains("9 Available")).await;

    terminal.type_line("datumctl-compute deploy web --image registry.invalid/web:2.0").await;
    terminal.until("what to do", |text| text.contains("next:") && text.ends_with('$')).await;
    shot("blocked", &terminal.picture(), essence);
    for (name, line) in [("status", "status web"), ("explain", "explain web")] {
        terminal.type_line(&format!("datumctl-compute {line}")).await;
        terminal.until(line, |text| text.contains("Next steps") && text.ends_with('$')).await;
        shot(name, &terminal.picture(), essence);
    }
}
