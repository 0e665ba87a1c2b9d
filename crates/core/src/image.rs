//! Image references: `[host[:port]/]path[:tag][@digest]`, as registries and container engines read them.

/// The longest name, host included, that registries take.
const MAX_NAME: usize = 255;
const MAX_TAG: usize = 128;
/// Digits of the shortest digest that anybody takes.
const MIN_DIGEST: usize = 32;

/// An image reference in its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference<'a> {
    /// Host and port of the registry. `None`: the engine's own default.
    pub registry: Option<&'a str>,
    /// The repository within the registry.
    pub repository: &'a str,
    /// The tag.
    pub tag: Option<&'a str>,
    /// The digest, with its algorithm.
    pub digest: Option<&'a str>,
}

/// An image reference that no registry could be asked for. No retry helps.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part} is not well formed")]
pub struct Malformed {
    /// The part that is wrong.
    pub part: &'static str,
}

impl<'a> Reference<'a> {
    /// Takes a reference apart.
    ///
    /// # Errors
    ///
    /// If it is not well formed.
    pub fn parse(text: &'a str) -> Result<Self, Malformed> {
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (text, None),
        };
        let (registry, rest) = match rest.split_once('/') {
            Some((first, rest)) if is_registry(first) => (Some(first), rest),
            _ => (None, rest),
        };
        // What comes after the last slash can hold a colon only before a tag.
        let last = rest.rfind('/').map_or(0, |at| at + 1);
        let (repository, tag) = match rest[last..].find(':') {
            Some(at) => (&rest[..last + at], Some(&rest[last + at + 1..])),
            None => (rest, None),
        };
        let wrong = |part| Err(Malformed { part });
        if registry.is_some_and(|registry| !is_host(registry)) {
            return wrong("the registry");
        }
        if repository.len() + registry.map_or(0, |host| host.len() + 1) > MAX_NAME
            || !repository.split('/').all(is_path_part)
        {
            return wrong("the name");
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return wrong("the tag");
        }
        if digest.is_some_and(|digest| !is_digest(digest)) {
            return wrong("the digest");
        }
        Ok(Self { registry, repository, tag, digest })
    }

    /// The registry's host, without its port.
    pub fn host(&self) -> Option<&'a str> {
        self.registry.map(|registry| registry.split_once(':').map_or(registry, |(host, _)| host))
    }
}

/// The part before the first slash is a host if it could not be a part of a path.
fn is_registry(first: &str) -> bool {
    first == "localhost" || first.contains(['.', ':']) || first.contains(|c: char| c.is_ascii_uppercase())
}

fn is_host(registry: &str) -> bool {
    let (host, port) = registry.split_once(':').map_or((registry, "443"), |(host, port)| (host, port));
    let label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    host.split('.').all(label) && port.parse::<u16>().is_ok()
}

/// Lower-case letters and digits, and between them one dot, one or two underscores, or any number of dashes.
fn is_path_part(part: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let separators = part.split(is_word).filter(|between| !between.is_empty());
    part.starts_with(is_word)
        && part.ends_with(is_word)
        && separators
            .into_iter()
            .all(|between| matches!(between, "." | "_" | "__") || between.bytes().all(|b| b == b'-'))
}

fn is_tag(tag: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    tag.len() <= MAX_TAG
        && tag.starts_with(is_word)
        && tag.chars().all(|c| is_word(c) || matches!(c, '.' | '-'))
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else { return false };
    algorithm.starts_with(|c: char| c.is_ascii_alphabetic())
        && algorithm.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '_' | '-'))
        && hex.len() >= MIN_DIGEST
        && hex.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_comes_apart() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let whole = format!("ghcr.io:443/team/my__app-x:v1.2@{digest}");
        assert_eq!(
            Reference::parse(&whole).unwrap(),
            Reference {
                registry: Some("ghcr.io:443"),
                repository: "team/my__app-x",
                tag: Some("v1.2"),
                digest: Some(&digest),
            }
        );
        for (text, host, repository, tag) in [
            ("nginx", None, "nginx", None),
            ("library/nginx:1", None, "library/nginx", Some("1")),
            ("localhost/app", Some("localhost"), "app", None),
            ("registry:5000/app:2", Some("registry"), "app", Some("2")),
            ("app:5000", None, "app", Some("5000")),
            ("no.such.invalid/app", Some("no.such.invalid"), "app", None),
        ] {
            let found = Reference::parse(text).unwrap();
            assert_eq!((found.host(), found.repository, found.tag), (host, repository, tag), "{text}");
        }
    }

    #[test]
    fn what_no_registry_takes_is_named() {
        for (text, part) in [
            ("", "the name"),
            ("Nginx", "the name"),
            ("a//b", "the name"),
            ("a b", "the name"),
            ("a..b", "the name"),
            ("-a", "the name"),
            ("app:", "the tag"),
            ("app:a b", "the tag"),
            ("app:-1", "the tag"),
            ("app@sha256:12", "the digest"),
            ("app@", "the digest"),
            ("a_b.com/app", "the registry"),
            ("host:port/app", "the registry"),
        ] {
            assert_eq!(Reference::parse(text), Err(Malformed { part }), "{text}");
        }
        assert!(Reference::parse(&"a".repeat(256)).is_err());
    }
}
