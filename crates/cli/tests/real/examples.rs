//! Every example in help texts and docs works.

use std::collections::BTreeSet;

use crate::support::Local;

const PROGRAM: &str = "datumctl-compute ";

/// The commands in a text: what begins with the program's name at the beginning of a line, or in a shell's words.
fn commands(text: &str) -> BTreeSet<String> {
    let lines = text
        .lines()
        .filter(|line| line.starts_with("  ") && !line.contains("[OPTIONS]") && !line.contains('<'));
    let plain = lines.filter_map(|line| line.trim().strip_prefix(PROGRAM)).map(|rest| rest.trim().to_owned());
    let nested = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once("datumctl-compute completion ")?;
        Some(format!("completion {}", rest.split([')', ' ', '|', '>']).next()?))
    });
    plain.chain(nested).filter(|line| !line.contains("[")).collect()
}

/// What has to be there comes before what uses it.
fn order(line: &str) -> u8 {
    match line {
        _ if line.starts_with("deploy hello") && line.contains("--city") => 0,
        _ if line.starts_with("deploy hello") && !line.contains("dry-run") => 1,
        _ if line.starts_with("rollout pause") => 4,
        _ if line.starts_with("rollout resume") => 5,
        _ if line.starts_with("rollout undo") => 6,
        _ if line.starts_with("destroy") => 9,
        _ => 3,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_works() {
    let local = Local::start().await;
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/samples");
    let sample = std::fs::read_to_string(format!("{samples}/workload.yaml")).unwrap();
    std::fs::write(local.dir.path().join("workload.yaml"), sample.replace("name: hello", "name: other"))
        .unwrap();
    let mut lines: Vec<String> = commands(&compute_cli::reference::markdown()).into_iter().collect();
    lines.sort_by_key(|line| (order(line), line.clone()));
    assert!(lines.len() > 25, "{lines:#?}");
    for line in lines {
        // Nobody is asked here.
        let asks = (line.starts_with("deploy -f") || line.starts_with("destroy")) && !line.contains("-y");
        let shown = if asks { format!("{line} -y") } else { line.clone() };
        if line.starts_with("destroy hello -y") {
            local.run("deploy hello --image a:1 --city DFW --no-wait").await.ends(0);
        }
        let ran = local.run(&shown).await;
        assert_eq!(ran.code, 0, "{line}: {}\n{}", ran.out, ran.err);
    }
}
