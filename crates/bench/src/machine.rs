//! The machine that the figures hold for: what it is, never which one it is.

use std::path::Path;

use crate::table::Table;

/// Describes the machine and the file system of `folder`.
pub fn describe(folder: &Path) -> Table {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let memory = field(&read("/proc/meminfo"), "MemTotal")
        .and_then(|value| value.split(' ').next()?.parse::<f64>().ok())
        .map(|kib| format!("{:.1} GiB", kib / f64::from(1 << 20)));
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mut table = Table::new(&["machine", "is"]);
    table.row(["CPU", &field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(unknown)]);
    table.row(["cores", &cores.to_string()]);
    table.row(["memory", &memory.unwrap_or_else(unknown)]);
    table.row(["kernel", &kernel(&read("/proc/sys/kernel/osrelease"))]);
    let file_system = file_system(&read("/proc/self/mountinfo"), &folder);
    table.row(["file system of the data", &file_system.unwrap_or_else(unknown)]);
    table.row(["build", if cfg!(debug_assertions) { "debug (figures mean nothing)" } else { "release" }]);
    table
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// The version alone: what follows it names a builder.
fn kernel(release: &str) -> String {
    let version = release.trim().split('-').next().unwrap_or_default();
    format!("Linux {version}")
}

/// The value of the first `name: value` line.
fn field(text: &str, name: &str) -> Option<String> {
    let values = text.lines().filter_map(|line| line.split_once(':'));
    let mut found = values.filter(|(key, _)| key.trim() == name);
    found.next().map(|(_, value)| value.trim().to_owned())
}

/// The type of the mount that holds `folder`.
fn file_system(mounts: &str, folder: &Path) -> Option<String> {
    let parsed = mounts.lines().filter_map(|line| {
        let (place, rest) = line.split_once(" - ")?;
        Some((Path::new(place.split(' ').nth(4)?), rest.split(' ').next()?))
    });
    let holding = parsed.filter(|(point, _)| folder.starts_with(point));
    // Of two mounts on one point, the later one is seen.
    holding.max_by_key(|(point, _)| point.as_os_str().len()).map(|(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_tells_the_file_system() {
        let mounts = "\
1 0 8:1 / / rw shared:1 - ext4 /dev/a rw
2 1 0:2 / /tmp rw - tmpfs tmpfs rw
3 1 0:3 / /tmp/data rw master:1 - xfs /dev/b rw
";
        let kind = |path: &str| file_system(mounts, Path::new(path));
        assert_eq!(kind("/home/x").as_deref(), Some("ext4"));
        assert_eq!(kind("/tmp/x").as_deref(), Some("tmpfs"));
        assert_eq!(kind("/tmp/data/x").as_deref(), Some("xfs"));
        assert_eq!(file_system("", Path::new("/")), None);
    }

    #[test]
    fn fields_of_proc_files_are_found() {
        let text = "processor\t: 0\nmodel name\t: Example CPU\nMemTotal:       100 kB\n";
        assert_eq!(field(text, "model name").as_deref(), Some("Example CPU"));
        assert_eq!(field(text, "MemTotal").as_deref(), Some("100 kB"));
        assert_eq!(field(text, "absent"), None);
        assert_eq!(kernel("6.1.2-someone-7\n"), "Linux 6.1.2");
    }
}
