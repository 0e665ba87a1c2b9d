//! The rule of this crate, checked: nothing in it can reach the outside.

/// What the crate may depend on. None of it does I/O, waits or reads a clock.
const ALLOWED: [&str; 5] = ["compute-api", "ipnet", "serde", "serde_json", "thiserror"];

#[test]
fn no_other_dependency_creeps_in() {
    let manifest = include_str!("../Cargo.toml");
    let dependencies = manifest
        .lines()
        .skip_while(|line| line.trim() != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', '=', ' ']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#'));
    for name in dependencies {
        assert!(ALLOWED.contains(&name), "compute-core may not depend on {name}");
    }
    for section in ["build-dependencies", "target.", "dependencies."] {
        let odd = manifest.lines().find(|line| line.starts_with('[') && line.contains(section));
        assert_eq!(odd, None, "dependencies belong into [dependencies], where this test sees them");
    }
}
