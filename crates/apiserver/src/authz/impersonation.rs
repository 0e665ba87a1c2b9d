//! Acting as somebody else: the `Impersonate-*` headers, who they name, and what the caller must be allowed for it.

use percent_encoding::percent_decode_str;

use super::attributes::{Attributes, Caller, ResourceAttributes, names, service_account};
use crate::auth::Identity;

const AUTHENTICATION: &str = "authentication.k8s.io";
const EXTRA: &str = "impersonate-extra-";

/// The headers make no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("requested {0} without impersonating a user")]
pub struct ImpersonationError(&'static str);

/// Whom a request is to be served as.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Impersonation {
    asked: Identity,
}

impl Impersonation {
    /// Reads the headers of a request; `None` if it asks for no impersonation. Names are taken in any case.
    pub fn from_headers<'a>(
        headers: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Option<Self>, ImpersonationError> {
        let mut asked = Identity::default();
        for (name, value) in headers {
            let first = |text: &mut String| {
                if text.is_empty() {
                    value.clone_into(text);
                }
            };
            // Nearly no request has such a header: the others are passed over without a copy.
            if !name.get(..12).is_some_and(|start| start.eq_ignore_ascii_case("impersonate-")) {
                continue;
            }
            match name.to_ascii_lowercase().as_str() {
                "impersonate-user" => first(&mut asked.user),
                "impersonate-uid" => first(&mut asked.uid),
                "impersonate-group" => asked.groups.push(value.to_owned()),
                name => {
                    if let Some(key) = name.strip_prefix(EXTRA) {
                        asked.extra.entry(extra_key(key)).or_default().push(value.to_owned());
                    }
                }
            }
        }
        if !asked.user.is_empty() {
            return Ok(Some(Self { asked }));
        }
        match &asked {
            Identity { groups, .. } if !groups.is_empty() => Err(ImpersonationError("groups")),
            Identity { extra, .. } if !extra.is_empty() => Err(ImpersonationError("extra")),
            Identity { uid, .. } if !uid.is_empty() => Err(ImpersonationError("a uid")),
            _ => Ok(None),
        }
    }

    /// Everything that `caller` must be allowed; the request is refused with the first that is not.
    pub fn required<'a>(&'a self, caller: Caller<'a>) -> Vec<Attributes<'a>> {
        let Identity { user: username, uid, groups, extra } = &self.asked;
        let ask = |resource| Attributes::resource(caller, "impersonate", resource);
        let core = ResourceAttributes::default();
        let own = ResourceAttributes { group: AUTHENTICATION, version: "v1", ..core };
        let user = match service_account(username) {
            Some((namespace, name)) => {
                ResourceAttributes { resource: "serviceaccounts", namespace, name, ..core }
            }
            None => ResourceAttributes { resource: "users", name: username, ..core },
        };
        let mut required = vec![ask(user)];
        required
            .extend(groups.iter().map(|name| ask(ResourceAttributes { resource: "groups", name, ..core })));
        for (subresource, values) in extra {
            let extras = ResourceAttributes { resource: "userextras", subresource, ..own };
            required.extend(values.iter().map(|name| ask(ResourceAttributes { name, ..extras })));
        }
        if !uid.is_empty() {
            required.push(ask(ResourceAttributes { resource: "uids", name: uid, ..own }));
        }
        required
    }

    /// Who the request is served as, once all that is required is allowed: with the groups that the name implies.
    pub fn into_user(self) -> Identity {
        let mut user = self.asked;
        if user.groups.is_empty()
            && let Some((namespace, _)) = service_account(&user.user)
        {
            let all = names::SERVICE_ACCOUNTS;
            user.groups = vec![all.to_owned(), format!("{all}:{namespace}")];
        }
        let has = |group: &str| user.groups.iter().any(|have| have == group);
        if user.user == names::ANONYMOUS {
            if !has(names::UNAUTHENTICATED) {
                user.groups.push(names::UNAUTHENTICATED.to_owned());
            }
        } else if !has(names::AUTHENTICATED) && !has(names::UNAUTHENTICATED) {
            user.groups.push(names::AUTHENTICATED.to_owned());
        }
        user
    }
}

/// The key of an extra: header names cannot carry every character, so it comes percent-encoded.
fn extra_key(encoded: &str) -> String {
    match percent_decode_str(encoded).decode_utf8() {
        Ok(decoded) => decoded.into_owned(),
        Err(_) => encoded.to_owned(),
    }
}
