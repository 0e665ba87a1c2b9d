//! Property names that are no identifiers, as rules write them: `a__dash__b`, `__namespace__`.

/// The property name that an escaped name stands for, if it is an escaped one.
pub(super) fn unescape(name: &str) -> Option<String> {
    const RESERVED: [&str; 20] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "while",
    ];
    let inside = name.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"));
    if let Some(word) = inside.filter(|word| RESERVED.contains(word) || *word == "void") {
        return Some(word.to_owned());
    }
    let mut plain = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, after)) = rest.split_once("__") {
        plain.push_str(before);
        let escapes = [("underscores__", "__"), ("dot__", "."), ("dash__", "-"), ("slash__", "/")];
        match escapes.iter().find_map(|(escape, meant)| Some((after.strip_prefix(escape)?, meant))) {
            Some((after, meant)) => {
                plain.push_str(meant);
                rest = after;
            }
            None => {
                plain.push_str("__");
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    (plain != name).then_some(plain)
}
