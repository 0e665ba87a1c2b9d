//! A terminal's text with its colours as an SVG picture.

use std::fmt::Write as _;

/// Sizes in pixels: of a letter, of a line, and around it all.
const LETTER: f64 = 8.4;
const LINE: f64 = 19.0;
const MARGIN: f64 = 16.0;

/// How a piece of text looks.
#[derive(Clone, Copy, Default, PartialEq)]
struct Look {
    colour: Option<&'static str>,
    bold: bool,
    dim: bool,
}

/// Draws the lines of a terminal.
pub fn draw(screen: &str, columns: usize) -> String {
    let lines: Vec<&str> = screen.trim_end_matches(['\n', ' ']).lines().collect();
    let count = |number: usize| u32::try_from(number).map_or(0.0, f64::from);
    let width = count(columns) * LETTER + 2.0 * MARGIN;
    let height = count(lines.len()) * LINE + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1b1f27\"/>\n\
         <g font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"14\" fill=\"#d6dae2\" xml:space=\"preserve\">\n"
    );
    let mut look = Look::default();
    for (at, line) in lines.iter().enumerate() {
        let y = MARGIN + (count(at) + 0.75) * LINE;
        let _ = write!(svg, "<text x=\"{MARGIN:.0}\" y=\"{y:.1}\">");
        for (style, text) in pieces(line, &mut look) {
            let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            if style == Look::default() {
                svg.push_str(&text);
                continue;
            }
            let colour = style.colour.map(|colour| format!(" fill=\"{colour}\"")).unwrap_or_default();
            let bold = if style.bold { " font-weight=\"bold\"" } else { "" };
            let dim = if style.dim { " opacity=\"0.6\"" } else { "" };
            let _ = write!(svg, "<tspan{colour}{bold}{dim}>{text}</tspan>");
        }
        svg.push_str("</text>\n");
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// The text in a picture.
pub fn text(svg: &str) -> String {
    let mut text = String::new();
    for line in svg.lines().filter(|line| line.starts_with("<text")) {
        let mut rest = line;
        while let Some((before, after)) = rest.split_once('<') {
            text.push_str(before);
            rest = after.split_once('>').map_or("", |(_, rest)| rest);
        }
        text.push_str(rest);
        text.push('\n');
    }
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// The pieces of a line, each in its own look. What is switched on stays so on the next line.
fn pieces(line: &str, look: &mut Look) -> Vec<(Look, String)> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        if !before.is_empty() {
            found.push((*look, before.to_owned()));
        }
        let end = after.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(after.len().saturating_sub(1));
        if after[end..].starts_with('m') {
            after[..end].split(';').for_each(|code| switch(code, look));
        }
        rest = after.get(end + 1..).unwrap_or_default();
    }
    if !rest.is_empty() {
        found.push((*look, rest.to_owned()));
    }
    found
}

fn switch(code: &str, look: &mut Look) {
    match code {
        "" | "0" => *look = Look::default(),
        "1" => look.bold = true,
        "2" => look.dim = true,
        "22" => (look.bold, look.dim) = (false, false),
        "31" => look.colour = Some("#ff6b6b"),
        "32" => look.colour = Some("#7bd88f"),
        "33" => look.colour = Some("#fcd566"),
        "39" => look.colour = None,
        _ => {}
    }
}

#[test]
fn colours_become_spans() {
    let svg = draw("a \x1b[31mb<\x1b[0m c\n", 10);
    assert!(svg.contains(">a <tspan fill=\"#ff6b6b\">b&lt;</tspan> c</text>"), "{svg}");
    assert_eq!(text(&svg), "a b< c\n");
}
