//! What is counted about the process itself: processor time, memory, open files, when it started, what it is, and which roles it leads.

use compute_runtime::{Metrics, Runtime};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::info::Info;
use rustix::time::{ClockId, clock_gettime};

/// Whether each role of the process leads. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Leading(Family<ByRole, Gauge>);

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByRole {
    role: &'static str,
}

impl Leading {
    /// Says whether a role leads.
    pub(crate) fn set(&self, role: &'static str, leads: bool) {
        self.0.get_or_create(&ByRole { role }).set(i64::from(leads));
    }
}

/// Registers all of it.
pub(crate) fn register(runtime: &Runtime) -> Leading {
    let metrics: &Metrics = runtime.metrics();
    let leading = Leading::default();
    let started = runtime.clock().now().as_second();
    metrics.register(|registry| {
        registry.register(
            "compute_build",
            "What runs",
            Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]),
        );
        registry.register(
            "compute_leader",
            "Whether this process does the work of a role, or waits for its turn",
            leading.0.clone(),
        );
        registry.register_collector(Box::new(Process { started }));
    });
    leading
}

/// Looks at the process when it is asked.
#[derive(Debug)]
struct Process {
    /// In seconds since 1970.
    started: i64,
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let spent = clock_gettime(ClockId::ProcessCPUTime);
        #[expect(clippy::cast_precision_loss, reason = "a process does not live for so long")]
        let spent = ConstCounter::new(spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9);
        let descriptor = encoder.encode_descriptor(
            "process_cpu_seconds",
            "Processor time spent",
            None,
            spent.metric_type(),
        )?;
        spent.encode(descriptor)?;
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let gauges = [
            ("process_start_time_seconds", "When it started, in seconds since 1970", Some(self.started)),
            ("process_resident_memory_bytes", "Memory in use", memory(&status, "VmRSS:")),
            ("process_virtual_memory_bytes", "Memory asked for", memory(&status, "VmSize:")),
            ("process_threads", "Threads", number(&status, "Threads:")),
            ("process_open_fds", "Files and sockets that are open", open_files()),
        ];
        for (name, help, value) in gauges {
            let Some(value) = value else { continue };
            let gauge = ConstGauge::new(value);
            let descriptor = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
            gauge.encode(descriptor)?;
        }
        Ok(())
    }
}

/// A line of `/proc/self/status`.
fn number(status: &str, name: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The same, of an amount in kibibytes.
fn memory(status: &str, name: &str) -> Option<i64> {
    Some(number(status, name)? * 1024)
}

fn open_files() -> Option<i64> {
    i64::try_from(std::fs::read_dir("/proc/self/fd").ok()?.count()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_is_measured() {
        let runtime = Runtime::system();
        register(&runtime).set("cell", true);
        let text = runtime.metrics().encode();
        for wanted in [
            "process_cpu_seconds_total ",
            "process_start_time_seconds ",
            "compute_leader{role=\"cell\"} 1",
            "compute_build_info{version=\"",
        ] {
            assert!(text.contains(wanted), "{wanted} is not in {text}");
        }
        if cfg!(target_os = "linux") {
            let line = text.lines().find(|line| line.starts_with("process_resident_memory_bytes ")).unwrap();
            let bytes: i64 = line.rsplit(' ').next().unwrap().parse().unwrap();
            assert!(bytes > 1 << 20, "{line}");
        }
    }
}
