//! Every reason that a condition can have is explained to people, and nothing else is.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use compute_api::conditions::{ALL_REASONS, platform};

const PAGE: &str = include_str!("../../../docs/reasons.md");
const PLATFORM: &str = include_str!("../src/conditions/platform.rs");
const QUOTA: &str = include_str!("../src/quota.rs");

/// The reasons of a source: constants whose name begins in this way.
fn constants(source: &'static str, prefix: &str) -> BTreeSet<&'static str> {
    let lines = source.lines().filter(|line| line.starts_with(prefix) && line.contains(": &str = "));
    lines.map(|line| line.split('"').nth(1).unwrap()).collect()
}

fn all() -> BTreeSet<&'static str> {
    let mut all: BTreeSet<_> = ALL_REASONS.into_iter().collect();
    all.extend(constants(PLATFORM, "pub const "));
    all.extend(constants(QUOTA, "pub const REASON_"));
    all
}

/// The paragraphs of the page, by the reason that they explain.
fn paragraphs() -> BTreeMap<&'static str, String> {
    let mut found = BTreeMap::new();
    for section in PAGE.split("\n### ").skip(1) {
        let (heading, rest) = section.split_once('\n').unwrap();
        let text = rest.split("\n## ").next().unwrap().trim().to_owned();
        let reason = heading.trim_matches('`');
        assert!(found.insert(reason, text).is_none(), "{reason} is explained twice");
    }
    found
}

#[test]
fn every_reason_has_a_paragraph_and_every_paragraph_a_reason() {
    let explained: BTreeSet<_> = paragraphs().into_keys().collect();
    let missing: Vec<_> = all().difference(&explained).copied().collect();
    assert!(missing.is_empty(), "docs/reasons.md lacks a paragraph for: {missing:?}");
    let unknown: Vec<_> = explained.difference(&all()).copied().collect();
    assert!(unknown.is_empty(), "docs/reasons.md explains what nobody says: {unknown:?}");
}

#[test]
fn every_paragraph_says_whose_move_it_is() {
    for (reason, text) in paragraphs() {
        assert!(text.split_whitespace().count() > 5, "{reason}: {text}");
        assert_eq!(text.matches("**Whose move:**").count(), 1, "{reason}: {text}");
    }
}

#[test]
fn links_within_the_page_lead_somewhere() {
    let anchors: BTreeSet<String> = paragraphs().keys().map(|reason| reason.to_lowercase()).collect();
    for link in PAGE.split("](#").skip(1) {
        let anchor = link.split(')').next().unwrap();
        assert!(anchors.contains(anchor), "{anchor}");
    }
}

#[test]
fn the_platform_lists_every_reason_of_its_own() {
    let listed: BTreeSet<_> = platform::ALL_PLATFORM_REASONS.into_iter().collect();
    assert_eq!(listed, constants(PLATFORM, "pub const "));
    assert_eq!(listed.len(), platform::ALL_PLATFORM_REASONS.len());
    let ours: BTreeSet<_> = ALL_REASONS.into_iter().collect();
    assert!(listed.is_disjoint(&ours));
}
