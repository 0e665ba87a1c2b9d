//! URLs as the `url()` function and the `uri` format understand them.

/// An absolute URL, or an absolute path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Lower case; empty for a path.
    pub scheme: String,
    /// With the port, and with brackets around an IPv6 address.
    pub host: String,
    /// As it stands in the URL.
    pub path: String,
    /// Without the question mark.
    pub query: String,
}

impl Url {
    /// Parses `text`; `None` if it is neither an absolute URL nor an absolute path.
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() || text.bytes().any(|b| b < 0x20 || b == 0x7f) {
            return None;
        }
        let (scheme, rest) = match text.strip_prefix('/') {
            Some(_) => (String::new(), text),
            None => {
                let (scheme, rest) = text.split_once(':')?;
                let letters = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
                let sound = scheme.as_bytes().first()?.is_ascii_alphabetic() && scheme.bytes().all(letters);
                if !sound {
                    return None;
                }
                (scheme.to_ascii_lowercase(), rest)
            }
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match rest.strip_prefix("//") {
            Some(after) if !scheme.is_empty() || !after.starts_with('/') => {
                after.split_at(after.find('/').unwrap_or(after.len()))
            }
            _ => ("", rest),
        };
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        // Something opaque such as `mailto:a@b` has no path to speak of.
        let opaque = !scheme.is_empty() && authority.is_empty() && !path.starts_with('/');
        if opaque && path.is_empty() && query.is_empty() && !rest.starts_with("//") {
            return Some(Self { scheme, host: String::new(), path: String::new(), query: String::new() });
        }
        let escapes_sound = |part: &str| {
            part.match_indices('%').all(|(at, _)| {
                let digits = part.as_bytes().get(at + 1..at + 3);
                digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            })
        };
        if !escapes_sound(path) || !host_is_sound(host) {
            return None;
        }
        let path = if opaque { "" } else { path };
        Some(Self { scheme, host: host.to_owned(), path: escaped(path), query: query.to_owned() })
    }

    /// The host without the port, and without brackets.
    pub fn hostname(&self) -> &str {
        match self.host.strip_prefix('[') {
            Some(inside) => inside.split_once(']').map_or(inside, |(address, _)| address),
            None => self.host.rsplit_once(':').map_or(&self.host, |(host, _)| host),
        }
    }

    /// The port, or nothing.
    pub fn port(&self) -> &str {
        let after = self.host.rsplit_once(']').map_or(self.host.as_str(), |(_, after)| after);
        after.rsplit_once(':').map_or("", |(_, port)| port)
    }

    /// The parameters of the query, decoded, each with its values in order.
    pub fn parameters(&self) -> Vec<(String, Vec<String>)> {
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        for pair in self.query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decoded(name), decoded(value));
            match found.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => values.push(value),
                None => found.push((name, vec![value])),
            }
        }
        found
    }
}

fn host_is_sound(host: &str) -> bool {
    let port_is_sound = |port: &str| port.bytes().all(|b| b.is_ascii_digit());
    if let Some(inside) = host.strip_prefix('[') {
        return match inside.split_once(']') {
            Some((address, "")) => !address.is_empty(),
            Some((address, port)) => !address.is_empty() && port.strip_prefix(':').is_some_and(port_is_sound),
            None => false,
        };
    }
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    port_is_sound(port) && !name.contains([' ', '<', '>', '"', '^', '`', '{', '}', '|', '\\'])
}

/// A path with what may not stand in it escaped.
fn escaped(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for b in path.bytes() {
        if b.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@!'()*%".contains(&b) {
            out.push(b as char);
        } else {
            out.push_str(&format!("%{b:02X}"));
        }
    }
    out
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        match (bytes[at], hex.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 2;
            }
            (b'+', _) => out.push(b' '),
            (byte, _) => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_come_apart() {
        let url = Url::parse("HTTPS://user@Example.com:8443/a b/c%20d?x=1&y=2&x=a+b%21").unwrap();
        assert_eq!((url.scheme.as_str(), url.host.as_str()), ("https", "Example.com:8443"));
        assert_eq!((url.hostname(), url.port()), ("Example.com", "8443"));
        assert_eq!(url.path, "/a%20b/c%20d");
        let expected = [
            ("x".to_owned(), vec!["1".to_owned(), "a b!".to_owned()]),
            ("y".to_owned(), vec!["2".to_owned()]),
        ];
        assert_eq!(url.parameters(), expected);
        let six = Url::parse("http://[::1]:80").unwrap();
        assert_eq!((six.hostname(), six.port(), six.path.as_str()), ("::1", "80", ""));
        assert_eq!(Url::parse("/just/a/path").unwrap().path, "/just/a/path");
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for text in
            ["", "example.com", "../up", "http://a:b", "http://[::1", "ht tp://x", "http://x/%zz", ":x"]
        {
            assert_eq!(Url::parse(text), None, "{text}");
        }
    }
}
