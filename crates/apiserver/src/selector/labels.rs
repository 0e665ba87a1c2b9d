//! Label selectors: `a=b,c!=d,e in (f,g),h notin (i),j,!k`.

use std::str::FromStr;

use super::SelectorError;
use crate::meta;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operator {
    /// Any of these, which are sorted.
    In(Vec<String>),
    /// None of these, which are sorted.
    NotIn(Vec<String>),
    Exists,
    Absent,
    Above(i64),
    Below(i64),
}

/// A parsed label selector: all requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<(String, Operator)>);

impl LabelSelector {
    pub(super) fn terms(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether labels (sorted by key) are picked.
    pub fn matches(&self, labels: &[(Box<str>, Box<str>)]) -> bool {
        self.0.iter().all(|(key, operator)| {
            let found = labels.binary_search_by(|(k, _)| (**k).cmp(key)).ok().map(|at| &*labels[at].1);
            match operator {
                Operator::In(values) => found.is_some_and(|v| has(values, v)),
                Operator::NotIn(values) => found.is_none_or(|v| !has(values, v)),
                Operator::Exists => found.is_some(),
                Operator::Absent => found.is_none(),
                Operator::Above(bound) => {
                    found.and_then(|v| v.parse::<i64>().ok()).is_some_and(|v| v > *bound)
                }
                Operator::Below(bound) => {
                    found.and_then(|v| v.parse::<i64>().ok()).is_some_and(|v| v < *bound)
                }
            }
        })
    }
}

/// There can be thousands of values, and each object of a list is asked.
fn has(sorted: &[String], value: &str) -> bool {
    sorted.binary_search_by(|known| known.as_str().cmp(value)).is_ok()
}

impl FromStr for LabelSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let mut parser = Parser { rest: text.trim(), whole: text };
        let mut requirements = Vec::new();
        while !parser.rest.is_empty() {
            requirements.push(parser.requirement()?);
            if parser.rest.is_empty() {
                break;
            }
            parser.expect(',')?;
            if parser.rest.is_empty() {
                return Err(parser.error("found nothing after ','"));
            }
        }
        Ok(Self(requirements))
    }
}

struct Parser<'a> {
    rest: &'a str,
    whole: &'a str,
}

impl Parser<'_> {
    fn error(&self, what: &str) -> SelectorError {
        let whole: String = self.whole.chars().take(256).collect();
        SelectorError(format!("unable to parse requirement: {what} in selector {whole:?}"))
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip_space();
        let eaten = self.rest.strip_prefix(token);
        self.rest = eaten.unwrap_or(self.rest);
        eaten.is_some()
    }

    fn expect(&mut self, token: char) -> Result<(), SelectorError> {
        if self.eat(token.encode_utf8(&mut [0; 4])) {
            Ok(())
        } else {
            Err(self.error(&format!("expected '{token}'")))
        }
    }

    fn word(&mut self) -> String {
        self.skip_space();
        let end =
            self.rest.find(|c: char| c.is_whitespace() || ",()=!<>".contains(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word.to_owned()
    }

    fn requirement(&mut self) -> Result<(String, Operator), SelectorError> {
        let absent = self.eat("!");
        let key = self.word();
        if let Some(problem) = meta::qualified_name_problem(&key) {
            return Err(self.error(&format!("key {key:?}: {problem}")));
        }
        self.skip_space();
        if absent {
            return Ok((key, Operator::Absent));
        }
        let operator = if self.rest.is_empty() || self.rest.starts_with(',') {
            Operator::Exists
        } else if self.eat("!=") {
            Operator::NotIn(vec![self.value()?])
        } else if self.eat("==") || self.eat("=") {
            Operator::In(vec![self.value()?])
        } else if self.eat(">") {
            Operator::Above(self.number()?)
        } else if self.eat("<") {
            Operator::Below(self.number()?)
        } else {
            match self.word().as_str() {
                "in" => Operator::In(self.values()?),
                "notin" => Operator::NotIn(self.values()?),
                other => {
                    return Err(self.error(&format!("found '{other}', expected: in, notin, =, ==, !=, >, <")));
                }
            }
        };
        Ok((key, operator))
    }

    fn value(&mut self) -> Result<String, SelectorError> {
        let value = self.word();
        match meta::label_value_problem(&value) {
            Some(problem) => Err(self.error(&format!("value {value:?}: {problem}"))),
            None => Ok(value),
        }
    }

    fn number(&mut self) -> Result<i64, SelectorError> {
        let value = self.value()?;
        value.parse().map_err(|_| self.error("for '>' and '<' the value must be an integer"))
    }

    fn values(&mut self) -> Result<Vec<String>, SelectorError> {
        self.expect('(')?;
        let mut values = vec![self.value()?];
        while self.eat(",") {
            values.push(self.value()?);
        }
        self.expect(')')?;
        values.sort_unstable();
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Vec<(Box<str>, Box<str>)> {
        pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect()
    }

    #[test]
    fn operators() {
        let have = labels(&[("app", "web"), ("n", "5"), ("x.io/tier", "")]);
        for (selector, expected) in [
            ("", true),
            ("app", true),
            ("!app", false),
            ("app=web", true),
            ("app==web,!gone", true),
            ("app != web", false),
            ("gone!=x", true),
            ("app in (api, web)", true),
            ("app in (api)", false),
            ("app notin (api,db)", true),
            ("gone notin (x)", true),
            ("x.io/tier=", true),
            ("x.io/tier in ()", true),
            ("n>4", true),
            ("n<5", false),
            ("app>4", false),
        ] {
            assert_eq!(selector.parse::<LabelSelector>().unwrap().matches(&have), expected, "{selector}");
        }
    }

    #[test]
    fn bad_selectors_are_refused() {
        for bad in ["=a", "a=b=c", "a in b", "a in (b", "a,", ",", "a b", "a=?", "-a", "n>x", "!a=b", "a!"] {
            assert!(bad.parse::<LabelSelector>().is_err(), "{bad}");
        }
    }
}
