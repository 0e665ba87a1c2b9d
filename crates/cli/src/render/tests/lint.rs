//! What no text for people may have in it.

use std::path::Path;

use compute_api::conditions::{ALL_REASONS, platform::ALL_PLATFORM_REASONS};

/// Kinds that people never have to know, and what belongs to the wire.
const INTERNAL: [&str; 18] = [
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
    "datumapis.com/",
    "miloapis.com",
    "://",
    "Bearer",
    "panicked",
    "StatusCode",
    "HyperError",
    "ServiceError",
];

fn snapshots() -> Vec<(String, String)> {
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

#[test]
fn nothing_internal_is_shown() {
    let reasons: Vec<&str> = ALL_REASONS
        .into_iter()
        .chain(ALL_PLATFORM_REASONS)
        .filter(|reason| reason.chars().filter(|c| c.is_uppercase()).count() > 1)
        .collect();
    let all = snapshots();
    assert!(all.len() > 100, "only {} snapshots", all.len());
    for (name, text) in all {
        // The contract has them shown there, under a heading of their own.
        let text = text.split("Conditions, as they are stored").next().unwrap_or_default();
        for word in reasons.iter().chain(&INTERNAL) {
            assert!(!text.contains(word), "{name} shows {word}:\n{text}");
        }
    }
}

#[test]
fn every_error_says_what_where_why_and_what_next() {
    for (name, text) in snapshots().into_iter().filter(|(name, _)| name.starts_with("error.")) {
        let plain = strip(&text);
        assert!(plain.starts_with("error: "), "{name} does not say what:\n{plain}");
        let head = plain.split("why:").next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(head.contains("(project demo)"), "{name} does not say where:\n{plain}");
        assert!(plain.contains("\n  why:"), "{name} does not say why:\n{plain}");
        assert!(plain.contains("\n  next:"), "{name} does not say what next:\n{plain}");
    }
}

#[test]
fn narrow_text_is_narrow() {
    for (name, text) in snapshots().into_iter().filter(|(name, _)| name.ends_with(".narrow")) {
        let text = text.split("Conditions, as they are stored").next().unwrap_or_default();
        for line in text.lines() {
            let wide = super::super::text::width(line);
            // A command is never broken.
            assert!(wide <= 60 || line.contains("datumctl-compute"), "{name}: {wide} columns:\n{line}");
        }
    }
}

#[test]
fn colour_is_only_where_it_may_be() {
    for (name, text) in snapshots() {
        assert!(!text.contains('␛') || name.ends_with(".terminal"), "{name} has colour");
    }
}

/// Text without colours.
fn strip(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('␛') {
        plain.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    plain + rest
}
