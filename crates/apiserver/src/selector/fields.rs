//! Field selectors: `metadata.name=a,status.phase!=Running`, over the fields that a kind declares selectable.

use super::SelectorError;
use crate::store::Meta;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Name,
    Namespace,
    /// Index into the values that are kept beside each object.
    Declared(usize),
}

/// A parsed field selector: all terms must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<(Field, bool, String)>);

impl FieldSelector {
    pub(super) fn terms(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn parse(text: &str, known: &[(String, usize)]) -> Result<Self, SelectorError> {
        let mut terms = Vec::new();
        for term in split_unescaped(text, ',').into_iter().filter(|term| !term.is_empty()) {
            let (path, equal, value) = split_term(&term).ok_or_else(|| {
                SelectorError(format!("invalid selector: '{text}'; can't understand '{term}'"))
            })?;
            let field = match path {
                "metadata.name" => Field::Name,
                "metadata.namespace" => Field::Namespace,
                path => known
                    .iter()
                    .find(|(declared, _)| declared.trim_start_matches('.') == path)
                    .map(|(_, at)| Field::Declared(*at))
                    .ok_or_else(|| SelectorError(format!("field label not supported: {path}")))?,
            };
            terms.push((field, equal, unescape(value)?));
        }
        Ok(Self(terms))
    }

    pub(super) fn matches(&self, meta: &Meta) -> bool {
        self.0.iter().all(|(field, equal, value)| {
            let found: &str = match field {
                Field::Name => &meta.key.name,
                Field::Namespace => &meta.key.namespace,
                Field::Declared(at) => meta.fields.get(*at).map_or("", AsRef::as_ref),
            };
            (found == value) == *equal
        })
    }
}

fn split_unescaped(text: &str, at: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        if c == at && !escaped {
            parts.push(String::new());
            continue;
        }
        escaped = c == '\\' && !escaped;
        parts.last_mut().expect("starts with one part").push(c);
    }
    parts
}

/// Path, whether equality (or inequality) is asked, and the value with its escapes.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.find(['=', '!'])?;
    let (path, rest) = term.split_at(at);
    let (equal, value) = match rest.strip_prefix("!=") {
        Some(value) => (false, value),
        None => (true, rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?),
    };
    Some((path.trim(), equal, value))
}

fn unescape(value: &str) -> Result<String, SelectorError> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                _ => {
                    return Err(SelectorError(format!(
                        "invalid field selector: invalid escape sequence in {value:?}"
                    )));
                }
            },
            '=' | ',' => {
                return Err(SelectorError(format!("invalid field selector: unescaped '{c}' in {value:?}")));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ObjectKey;

    fn meta() -> Meta {
        Meta {
            key: ObjectKey::new("ns", "a"),
            uid: "".into(),
            labels: Box::default(),
            fields: ["Running".into(), "x,y=z".into()].into(),
            owners: Box::default(),
            finalizers: Box::default(),
            deleting: false,
        }
    }

    #[test]
    fn terms() {
        let known = [("status.phase".to_owned(), 0), (".spec.odd".to_owned(), 1)];
        for (text, expected) in [
            ("", true),
            ("metadata.name=a", true),
            ("metadata.name==b", false),
            ("metadata.namespace=ns,status.phase!=Failed", true),
            ("status.phase=", false),
            (r"spec.odd=x\,y\=z", true),
        ] {
            assert_eq!(FieldSelector::parse(text, &known).unwrap().matches(&meta()), expected, "{text}");
        }
        for bad in ["spec.other=a", "metadata.name", "metadata.name=a=b", r"metadata.name=a\b"] {
            assert!(FieldSelector::parse(bad, &known).is_err(), "{bad}");
        }
    }
}
