//! Paths: which plane a request is for, and which resource in it.

use percent_encoding::percent_decode_str;

use crate::error::{ApiError, Result};
use crate::planes::PlaneName;
use crate::server::Options;

/// A family of planes reached by a path prefix: `<before><name><after>/…` leads to plane `<plane_prefix><name>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaneRoute {
    /// Path before the name, with both slashes: `/apis/resourcemanager.example.com/v1/projects/`.
    pub before: String,
    /// Path after the name, with its first slash: `/control-plane`.
    pub after: String,
    /// What the plane's name has before the name in the path.
    pub plane_prefix: String,
}

impl PlaneRoute {
    /// Name in the path and the rest, if the path is of this family.
    fn split<'a>(&self, path: &'a str) -> Option<(&'a str, &'a str)> {
        let (name, rest) = split_segment(path.strip_prefix(self.before.as_str())?);
        let rest = rest.strip_prefix(self.after.as_str())?;
        (rest.is_empty() || rest.starts_with('/')).then_some((name, rest))
    }
}

fn split_segment(path: &str) -> (&str, &str) {
    path.split_at(path.find('/').unwrap_or(path.len()))
}

/// The plane that a path belongs to (`None` if no plane can have that name), and the path within it.
pub(super) fn plane_of<'a>(options: &Options, path: &'a str) -> (Option<PlaneName>, &'a str) {
    if let Some(rest) = path.strip_prefix("/planes/") {
        let (name, rest) = split_segment(rest);
        return (PlaneName::new(name).ok(), rest);
    }
    for route in &options.routes {
        if let Some((name, rest)) = route.split(path) {
            return (PlaneName::new(&format!("{}{name}", route.plane_prefix)).ok(), rest);
        }
    }
    (Some(options.root_plane.clone()), path)
}

/// Decoded path segments. No segment may hide a slash or be empty.
pub(super) fn segments(path: &str) -> Result<Vec<String>> {
    let trimmed = path.trim_start_matches('/').trim_end_matches('/');
    if trimmed.is_empty() {
        return Ok(Vec::new());
    }
    trimmed
        .split('/')
        .map(|segment| {
            let decoded = percent_decode_str(segment).decode_utf8().map_err(|_| ApiError::NoSuchPath)?;
            if decoded.is_empty() || decoded.contains('/') {
                Err(ApiError::NoSuchPath)
            } else {
                Ok(decoded.into_owned())
            }
        })
        .collect()
}

/// Group, version and the segments from the resource on, if the path names a resource.
pub(super) fn resource_segments<'a>(segments: &'a [&'a str]) -> Option<(&'a str, &'a str, &'a [&'a str])> {
    match segments {
        ["api", version, rest @ ..] if !rest.is_empty() => Some(("", version, rest)),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => Some((group, version, rest)),
        _ => None,
    }
}

/// Where in a group and version a request points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<'a> {
    pub(super) namespace: Option<&'a str>,
    pub(super) plural: &'a str,
    pub(super) name: Option<&'a str>,
    pub(super) subresource: Option<&'a str>,
}

/// Reads the segments from the resource on.
pub(super) fn place<'a>(segments: &[&'a str]) -> Result<Place<'a>> {
    let (namespace, rest) = match segments {
        // Namespaces are a resource themselves, with subresources that look like resources in them.
        ["namespaces", _, "status" | "finalize"] => (None, segments),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
        _ => (None, segments),
    };
    let place = |plural, name, subresource| Ok(Place { namespace, plural, name, subresource });
    match *rest {
        [plural] => place(plural, None, None),
        [plural, name] => place(plural, Some(name), None),
        [plural, name, subresource] => place(plural, Some(name), Some(subresource)),
        _ => Err(ApiError::NoSuchPath),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        let route = PlaneRoute {
            before: "/apis/rm.example.com/v1/projects/".to_owned(),
            after: "/control-plane".to_owned(),
            plane_prefix: "project-".to_owned(),
        };
        Options { routes: vec![route], ..Options::default() }
    }

    #[test]
    fn planes_by_path() {
        for (path, plane, rest) in [
            ("/api/v1/pods", Some("core"), "/api/v1/pods"),
            ("/planes/hub/api", Some("hub"), "/api"),
            ("/planes/hub", Some("hub"), ""),
            ("/planes/HUB/api", None, "/api"),
            ("/planes/", None, ""),
            ("/apis/rm.example.com/v1/projects/a/control-plane/api/v1", Some("project-a"), "/api/v1"),
            ("/apis/rm.example.com/v1/projects/a/control-plane", Some("project-a"), ""),
            (
                "/apis/rm.example.com/v1/projects/a/control-planes",
                Some("core"),
                "/apis/rm.example.com/v1/projects/a/control-planes",
            ),
            ("/apis/rm.example.com/v1/projects/a", Some("core"), "/apis/rm.example.com/v1/projects/a"),
            ("/apis/rm.example.com/v1/projects/%2e%2e/control-plane/api", None, "/api"),
        ] {
            let (found, found_rest) = plane_of(&options(), path);
            assert_eq!((found.as_ref().map(PlaneName::as_str), found_rest), (plane, rest), "{path}");
        }
    }

    #[test]
    fn places() {
        let read = |path: &str| {
            let segments = path.split('/').collect::<Vec<_>>();
            place(&segments).map(|p| {
                (
                    p.namespace.map(str::to_owned),
                    p.plural.to_owned(),
                    p.name.map(str::to_owned),
                    p.subresource.map(str::to_owned),
                )
            })
        };
        let some = |s: &str| Some(s.to_owned());
        assert_eq!(read("namespaces").unwrap(), (None, "namespaces".to_owned(), None, None));
        assert_eq!(read("namespaces/a").unwrap(), (None, "namespaces".to_owned(), some("a"), None));
        assert_eq!(
            read("namespaces/a/status").unwrap(),
            (None, "namespaces".to_owned(), some("a"), some("status"))
        );
        assert_eq!(read("namespaces/a/pods/b").unwrap(), (some("a"), "pods".to_owned(), some("b"), None));
        assert_eq!(read("nodes/b/status").unwrap(), (None, "nodes".to_owned(), some("b"), some("status")));
        assert!(read("namespaces/a/pods/b/log/x").is_err());
        assert!(
            segments("/api//v1").is_err() && segments("/api/a%2Fb").is_err() && segments("/api/%ff").is_err()
        );
    }
}
