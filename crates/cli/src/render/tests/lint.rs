//! What no text for people may have in it, and what every error must. Each rule is a function, so that it can be shown to find something.

use std::path::Path;

use compute_api::conditions::{ALL_REASONS, platform::ALL_PLATFORM_REASONS};

/// Kinds that people never have to know, and what belongs to the wire.
const INTERNAL: [&str; 20] = [
    "WorkloadDeployment",
    "LocationBinding",
    "ResourceClaim",
    "ResourceGrant",
    "AllowanceBucket",
    "ServiceEntitlement",
    "NetworkBinding",
    "NetworkContext",
    "SubnetClaim",
    "PropagationPolicy",
    "ConfigMap",
    "datumapis.com",
    "miloapis.com",
    "://",
    "Bearer",
    "panicked",
    "StatusCode",
    "HyperError",
    "ServiceError",
    "SchedulingGate",
];
/// Below this heading the contract has conditions shown as they are stored.
const RAW: &str = "Conditions";

/// All snapshots, by name.
pub(super) fn snapshots() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "snap"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            let body = text.splitn(3, "---\n").nth(2).unwrap_or_default().to_owned();
            (path.file_stem().unwrap().to_string_lossy().into_owned(), body)
        })
        .collect();
    found.sort();
    found
}

/// What is shown that people never have to know.
fn internal(text: &str) -> Option<String> {
    let text = text.split(RAW).next().unwrap_or_default();
    let reasons = ALL_REASONS.into_iter().chain(ALL_PLATFORM_REASONS);
    let known = reasons.filter(|reason| humps(reason) > 1).chain(INTERNAL);
    if let Some(word) = known.into_iter().find(|word| text.contains(word)) {
        return Some(word.to_owned());
    }
    // A reason that nobody has thought of is spelled like the others.
    let words = text.split(|c: char| !c.is_alphanumeric());
    let mut spelled = words.filter(|word| humps(word) > 1 && word.chars().any(char::is_lowercase));
    spelled.find(|word| !["GiB", "MiB", "PowerShell"].contains(word)).map(str::to_owned)
}

/// How many words are written together in one.
fn humps(word: &str) -> usize {
    let starts = word.chars().next().is_some_and(char::is_uppercase);
    let letters: Vec<char> = word.chars().collect();
    let inner = letters.windows(2).filter(|pair| pair[0].is_lowercase() && pair[1].is_uppercase()).count();
    inner + usize::from(starts)
}

/// What an error does not say.
fn unsaid(text: &str) -> Option<&'static str> {
    let plain = strip(text);
    let head =
        plain.split("why:").next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let what = head.strip_prefix("error: ").map(|head| head.split('(').next().unwrap_or_default());
    if what.is_none_or(|what| what.trim().is_empty()) {
        return Some("what");
    }
    let places = ["(project ", "(on the command line)", "(no project chosen)"];
    if !places.iter().any(|place| head.contains(place)) {
        return Some("where");
    }
    let said = |label: &str| {
        let rest = plain.split_once(label).map(|(_, rest)| rest);
        rest.and_then(|rest| rest.lines().next()).is_some_and(|line| !line.trim().is_empty())
    };
    if !said("\n  why:") {
        return Some("why");
    }
    (!said("\n  next:")).then_some("what next")
}

/// The first line that does not fit into 60 columns.
fn too_wide(text: &str) -> Option<&str> {
    let text = text.split(RAW).next().unwrap_or_default();
    // A command is never broken.
    text.lines().find(|line| super::super::text::width(line) > 60 && !line.contains("datumctl-compute"))
}

#[test]
fn nothing_internal_is_shown() {
    let all = snapshots();
    assert!(all.len() > 300, "only {} snapshots", all.len());
    for (name, text) in all {
        // What a person wrote into a manifest is named as it was written.
        if name.starts_with("error.manifest-") {
            continue;
        }
        assert_eq!(internal(&strip(&text)), None, "{name}:\n{text}");
    }
}

#[test]
fn every_error_says_what_where_why_and_what_next() {
    let errors: Vec<_> = snapshots().into_iter().filter(|(name, _)| name.starts_with("error.")).collect();
    assert!(errors.len() > 150, "only {} errors", errors.len());
    for (name, text) in errors {
        assert_eq!(unsaid(&text), None, "{name}:\n{text}");
    }
}

#[test]
fn narrow_text_is_narrow() {
    for (name, text) in snapshots().into_iter().filter(|(name, _)| name.ends_with(".narrow")) {
        assert_eq!(too_wide(&text), None, "{name}");
    }
}

#[test]
fn colour_is_only_where_it_may_be() {
    for (name, text) in snapshots() {
        assert!(!text.contains('␛') || name.ends_with(".terminal"), "{name} has colour");
    }
}

#[test]
fn the_lint_finds_what_it_is_for() {
    assert_eq!(internal("DFW  Degraded (image unavailable), 2 GiB left"), None);
    for (text, found) in [
        ("cannot read WorkloadDeployments", "WorkloadDeployment"),
        ("web: ImageUnavailable", "ImageUnavailable"),
        ("web: SomethingNewAndStrange happened", "SomethingNewAndStrange"),
        ("workloads.compute.datumapis.com is forbidden", "datumapis.com"),
        ("see https://example.com/x", "://"),
    ] {
        assert_eq!(internal(text).as_deref(), Some(found), "{text}");
    }
    assert_eq!(internal("well\nConditions\n  StableInstanceFound"), None);

    let good = "error: cannot deploy web (project demo)\n  why:   it is so\n  next:  run it again\n";
    assert_eq!(unsaid(good), None);
    for (from, to, missing) in [
        ("error: ", "", "what"),
        ("cannot deploy web ", "", "what"),
        (" (project demo)", "", "where"),
        ("it is so", "", "why"),
        ("  why:   it is so\n", "", "why"),
        ("  next:  run it again\n", "", "what next"),
        ("run it again", "", "what next"),
    ] {
        assert_eq!(unsaid(&good.replace(from, to)), Some(missing), "without {from:?}");
    }

    assert_eq!(too_wide(&"x".repeat(60)), None);
    assert!(too_wide(&"x".repeat(61)).is_some());
}

/// Text without colours.
pub(super) fn strip(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('␛') {
        plain.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    plain + rest
}
