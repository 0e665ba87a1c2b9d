//! Lines of text within a width.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::{Look, Tone};
use crate::failure::Step;
use crate::invocation::Invocation;

/// Columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// As much of a text as fits.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1;
    for letter in text.chars() {
        used += letter.width().unwrap_or(0);
        if used > most {
            break;
        }
        kept.push(letter);
    }
    format!("{}…", kept.trim_end())
}

/// A text in lines that fit, each after an indent. A word that does not fit has a line of its own.
pub(crate) fn wrap(text: &str, indent: &str, look: Look) -> String {
    let most = look.width.map_or(usize::MAX, |columns| columns.saturating_sub(width(indent)).max(20));
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            if !line.is_empty() && width(&line).saturating_add(1).saturating_add(width(word)) > most {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines.iter().map(|line| format!("{indent}{line}\n")).collect()
}

/// Sentences in lines that fit. What is indented is a command, and is never broken.
pub(crate) fn flow(text: &str, look: Look) -> String {
    let line = |line: &str| match line.starts_with("  ") {
        true => format!("{line}\n"),
        false => wrap(line, "", look),
    };
    text.lines().map(|one| if one.is_empty() { "\n".to_owned() } else { line(one) }).collect()
}

/// A name and how it is: in a line, or below each other where that does not fit.
pub(crate) fn headline(name: &str, status: &str, tone: Tone, look: Look) -> String {
    let fits = look.width.is_none_or(|columns| width(name) + 2 + width(status) <= columns);
    let name = look.paint(Tone::Strong, name);
    if fits {
        return format!("{name}: {}\n", look.paint(tone, status));
    }
    let lines = wrap(status, "  ", look);
    let painted: String = lines.lines().map(|line| format!("{}\n", look.paint(tone, line))).collect();
    format!("{name}:\n{painted}")
}

/// Names and values, one pair a line, with the values in one column.
pub(crate) fn pairs(pairs: &[(&str, String)], indent: &str, look: Look) -> String {
    let widest = pairs.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    let hang = format!("{indent}{}", " ".repeat(widest + 2));
    let mut text = String::new();
    for (name, value) in pairs {
        let wrapped = wrap(value, &hang, look);
        let label =
            format!("{indent}{}{}", look.paint(Tone::Dim, name), " ".repeat(widest + 2 - width(name)));
        text.push_str(&label);
        text.push_str(wrapped.strip_prefix(&hang).unwrap_or(&wrapped));
    }
    text
}

/// Commands to go on with: beside each what it is for, or above it where that does not fit.
pub(crate) fn steps(steps: &[Step], invocation: &Invocation, indent: &str, look: Look) -> String {
    let line = |step: &Step| match step.is_ours {
        true => invocation.command(&step.command),
        false => step.command.clone(),
    };
    let widest = steps.iter().map(|step| width(&line(step))).max().unwrap_or(0);
    let longest = steps.iter().map(|step| width(&step.purpose)).max().unwrap_or(0);
    let fits = look.width.is_none_or(|columns| width(indent) + widest + 3 + longest <= columns);
    let mut text = String::new();
    for step in steps {
        let command = line(step);
        let shown = look.paint(Tone::Strong, &command);
        if fits {
            let gap = " ".repeat(widest + 3 - width(&command));
            text.push_str(&format!("{indent}{shown}{gap}{}\n", look.paint(Tone::Dim, &step.purpose)));
        } else {
            // A command is never broken: it is there to be pasted.
            text.push_str(&wrap(&format!("{}:", step.purpose), indent, look));
            text.push_str(&format!("{indent}  {shown}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: Look = Look { width: Some(30), colour: false };

    #[test]
    fn text_keeps_within_its_width() {
        assert_eq!(cut("hello world", 8), "hello w…");
        assert_eq!(cut("hello", 5), "hello");
        assert_eq!(
            wrap("one two three four five six seven", "  ", NARROW),
            "  one two three four five six\n  seven\n"
        );
        assert_eq!(wrap("a\n\nb", "", NARROW), "a\n\nb\n");
        let told = "It is done, and it goes on with:\n  datumctl-compute rollout status web --project shop\n";
        assert_eq!(
            flow(told, NARROW),
            "It is done, and it goes on\nwith:\n  datumctl-compute rollout status web --project shop\n"
        );
    }

    #[test]
    fn values_stand_in_one_column() {
        let text =
            pairs(&[("Image", "a".into()), ("Revision", "7, long ago by somebody".into())], "  ", NARROW);
        assert_eq!(text, "  Image     a\n  Revision  7, long ago by\n            somebody\n");
    }
}
