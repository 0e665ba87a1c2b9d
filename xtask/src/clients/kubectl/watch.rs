//! get --watch: changes arrive as they happen.

use super::super::harness::Topic;
use super::{config_map, workload};

pub(super) fn cases(t: &mut Topic<'_>) {
    t.case("get -w shows what is there, then every change", |k| {
        k.cmd("create -f -").stdin(config_map("first", &["a: x"])).ok()?;
        let mut watch = k.cmd("get configmaps -w").start()?;
        watch.shows("NAME DATA AGE")?;
        watch.shows("first 1 *")?;
        k.cmd("create -f -").stdin(config_map("second", &["a: x", "b: x"])).ok()?;
        watch.shows("second 2 *")?;
        k.cmd("patch configmap first --type=merge -p '{\"data\":{\"b\":\"x\",\"c\":\"x\"}}'").ok()?;
        watch.shows("first 3 *")?;
        watch.stop().quiet()
    });
    t.case("get -w --output-watch-events names the changes", |k| {
        let mut watch = k.cmd("get configmaps --watch-only --output-watch-events").start()?;
        // The watch starts some time after the command does: touch the object until it shows.
        for turn in 0..50 {
            k.cmd(&format!("annotate configmap first --overwrite turn={turn}")).ok()?;
            if watch.shows_soon("MODIFIED first 3 *") {
                break;
            }
        }
        watch.shows("MODIFIED first 3 *")?;
        k.cmd("create configmap third --from-literal=a=x").ok()?;
        watch.shows("ADDED third 1 *")?;
        k.cmd("delete configmap third").ok()?;
        watch.shows("DELETED third 1 *")?;
        watch.stop().lacks("second")
    });
    t.case("get -w -l follows objects into and out of the selection", |k| {
        let mut watch = k.cmd("get configmaps -w -l pick=yes --output-watch-events").start()?;
        k.cmd("label configmap first pick=yes").ok()?;
        watch.shows("ADDED first 3 *")?;
        k.cmd("label configmap first pick=no --overwrite").ok()?;
        watch.shows("DELETED first 3 *")?;
        watch.stop().lacks("second")
    });
    t.case("get -w one object by name", |k| {
        let mut watch = k.cmd("get configmap second -w -o name").start()?;
        watch.shows("configmap/second")?;
        k.cmd("label configmap first unrelated=yes").ok()?;
        k.cmd("delete configmap second").ok()?;
        watch.stop().lacks("first")
    });
    t.case("get -w of a custom kind has its columns", |k| {
        k.cmd("create -f -").stdin(workload("web", "nginx:1")).ok()?;
        let mut watch = k.cmd("get workloads -w").start()?;
        watch.shows("web * Unknown Pending 0 0 0 0 0")?;
        k.cmd("patch workload web --subresource=status --type=merge -p '{\"status\":{\"replicas\":2}}'")
            .ok()?;
        watch.shows("web * Unknown Pending 0 2 0 0 0")?;
        watch.stop().quiet()
    });
    t.case("get -w ends with its request timeout", |k| {
        k.cmd("get configmaps -w --request-timeout=2s").run()?.row("first 3 *")
    });
}
