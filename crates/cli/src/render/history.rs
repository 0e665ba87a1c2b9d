//! Revisions.

use compute_api::k8s::Timestamp;
use compute_core::revisions::{History, Revision};
use similar::TextDiff;

use super::table::{Cell, Column, Table};
use super::{Look, Tone};
use crate::words::time;

/// Revisions in a table, the newest first.
pub(crate) fn list(
    history: &History,
    current: Option<i64>,
    is_wide: bool,
    now: Timestamp,
    look: Look,
) -> String {
    let mut columns = vec![
        Column::number("REVISION"),
        Column::new("WHEN"),
        Column::new("WHO").or_drop(2),
        Column::new("ACTION").or_drop(3),
        Column::cut("CHANGE"),
    ];
    if is_wide {
        columns.push(Column::new("TEMPLATE"));
    }
    let mut table = Table::new(columns);
    for revision in history.revisions().rev() {
        let mark = if Some(revision.number) == current { "* " } else { "" };
        let mut cells = vec![
            Cell::from(format!("{mark}{}", revision.number)),
            time::ago(revision.at, now).into(),
            Cell::toned(revision.by.as_deref().unwrap_or("not recorded"), Tone::Dim),
            revision.action.as_deref().unwrap_or("found").into(),
            change(revision).into(),
        ];
        if is_wide {
            cells.push(revision.template_hash.chars().take(15).collect::<String>().into());
        }
        table.row(cells);
    }
    table.render(look)
}

fn change(revision: &Revision) -> String {
    match revision.changes.as_slice() {
        [] if revision.action.is_some() => "created".to_owned(),
        [] => "found as it is".to_owned(),
        changes => changes.join("; "),
    }
}

/// The differences of two texts, line by line.
pub(crate) fn diff(before: &str, after: &str, look: Look) -> String {
    let diff = TextDiff::from_lines(before, after);
    let mut text = String::new();
    for (at, group) in diff.grouped_ops(3).iter().enumerate() {
        if at > 0 {
            text.push_str(&format!("{}\n", look.paint(Tone::Dim, "  ...")));
        }
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            let (sign, tone) = match change.tag() {
                similar::ChangeTag::Delete => ("-", Tone::Bad),
                similar::ChangeTag::Insert => ("+", Tone::Good),
                similar::ChangeTag::Equal => (" ", Tone::Plain),
            };
            let line = format!("{sign} {}", change.value().trim_end_matches('\n'));
            text.push_str(&format!("{}\n", look.paint(tone, line.trim_end())));
        }
    }
    text
}
