//! Tokens of service accounts: signed statements (JWT, ES256) that a request comes from a service account of one plane.
//!
//! Guarantees: a token counts in the plane that issued it, for the audience it was made for, between its two times, and as
//! long as the service account (and the object it is bound to) is the very one it was made for. Nothing of it is kept.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use serde::{Deserialize, Serialize};

use super::Identity;
use crate::authz::names;
use crate::planes::PlaneName;
use crate::private_file;
use crate::store::StorageError;

/// The only header that is accepted. Whoever could choose the algorithm could choose a weak one.
const HEADER: &str = r#"{"alg":"ES256","typ":"JWT"}"#;
/// Longer than any token that is issued.
const MAX_TOKEN: usize = 16 << 10;
/// What stands before a plane's name in the name of an issuer.
const ISSUER: &str = "https://kubernetes.default.svc/planes/";

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    iss: String,
    sub: String,
    aud: Vec<String>,
    exp: i64,
    nbf: i64,
    iat: i64,
    jti: String,
    #[serde(rename = "kubernetes.io")]
    about: About,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct About {
    namespace: String,
    serviceaccount: Reference,
    #[serde(skip_serializing_if = "Option::is_none")]
    bound: Option<BoundObject>,
}

/// An object that is meant itself, not another of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reference {
    /// Name.
    pub(crate) name: String,
    /// Uid.
    pub(crate) uid: String,
}

/// An object whose end is the token's end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BoundObject {
    /// Plural name in the core group.
    pub(crate) resource: String,
    /// Which one, in the service account's namespace.
    pub(crate) object: Reference,
}

/// What a new token is to say.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    pub(crate) plane: PlaneName,
    pub(crate) namespace: String,
    pub(crate) account: Reference,
    pub(crate) bound: Option<BoundObject>,
    /// Empty for the plane itself.
    pub(crate) audiences: Vec<String>,
    pub(crate) now: Timestamp,
    pub(crate) seconds: i64,
    /// Tells this token from all others.
    pub(crate) id: String,
}

impl Claims {
    /// What a grant comes to.
    pub(crate) fn new(grant: Grant) -> Self {
        let issuer = issuer(&grant.plane);
        let now = grant.now.as_second();
        Self {
            sub: format!("system:serviceaccount:{}:{}", grant.namespace, grant.account.name),
            aud: if grant.audiences.is_empty() { vec![issuer.clone()] } else { grant.audiences },
            iss: issuer,
            exp: now.saturating_add(grant.seconds),
            nbf: now,
            iat: now,
            jti: grant.id,
            about: About { namespace: grant.namespace, serviceaccount: grant.account, bound: grant.bound },
        }
    }

    /// Whether the plane's own API is among those it was made for, or one of `audiences` if there are any.
    pub(crate) fn is_for(&self, plane: &PlaneName, audiences: &[String]) -> bool {
        match audiences {
            [] => self.aud.contains(&issuer(plane)),
            wanted => self.aud.iter().any(|own| wanted.contains(own)),
        }
    }

    /// Whether `plane` issued it.
    pub(crate) fn is_of(&self, plane: &PlaneName) -> bool {
        self.iss.strip_prefix(ISSUER) == Some(plane.as_str())
    }

    /// Namespace and service account.
    pub(crate) fn account(&self) -> (&str, &Reference) {
        (&self.about.namespace, &self.about.serviceaccount)
    }

    /// What it is bound to beside the service account.
    pub(crate) fn bound(&self) -> Option<&BoundObject> {
        self.about.bound.as_ref()
    }

    /// For whom it was made.
    pub(crate) fn audiences(&self) -> &[String] {
        &self.aud
    }

    /// When it ends.
    pub(crate) fn expires(&self) -> i64 {
        self.exp
    }

    /// Who its bearer is.
    pub(crate) fn identity(&self) -> Identity {
        let mut identity = Identity {
            user: self.sub.clone(),
            uid: self.about.serviceaccount.uid.clone(),
            groups: vec![
                names::SERVICE_ACCOUNTS.to_owned(),
                format!("{}:{}", names::SERVICE_ACCOUNTS, self.about.namespace),
            ],
            ..Identity::default()
        };
        let id = vec![format!("JTI={}", self.jti)];
        identity.extra.insert("authentication.kubernetes.io/credential-id".to_owned(), id);
        if let Some(bound) = self.bound().filter(|bound| bound.resource == "pods") {
            let fact = |name: &str| format!("authentication.kubernetes.io/{name}");
            identity.extra.insert(fact("pod-name"), vec![bound.object.name.clone()]);
            identity.extra.insert(fact("pod-uid"), vec![bound.object.uid.clone()]);
        }
        identity.authenticated()
    }
}

/// The name under which a plane issues tokens; also the audience of its own API.
pub(crate) fn issuer(plane: &PlaneName) -> String {
    format!("{ISSUER}{plane}")
}

/// The key with which tokens are signed.
pub(crate) struct Signer {
    key: EcdsaKeyPair,
    random: SystemRandom,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signer")
    }
}

impl Signer {
    /// A key for this process alone.
    pub(crate) fn generate() -> Self {
        let pkcs8 = new_key();
        Self::from_pkcs8(&pkcs8).expect("a key that was just made is a key")
    }

    /// The key in a file; made when there is none.
    pub(crate) fn open(path: &Path) -> Result<Self, StorageError> {
        let pkcs8 = private_file::read_or_create(path, new_key)?;
        Self::from_pkcs8(&pkcs8).ok_or_else(|| StorageError::BadKey(path.to_owned()))
    }

    fn from_pkcs8(pkcs8: &[u8]) -> Option<Self> {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &random).ok()?;
        Some(Self { key, random })
    }

    /// The token for `claims`; none if the machine has no random numbers.
    pub(crate) fn sign(&self, claims: &Claims) -> Option<String> {
        let claims = serde_json::to_vec(claims).expect("claims always serialise into memory");
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(HEADER), URL_SAFE_NO_PAD.encode(claims));
        let signature = self.key.sign(&self.random, signed.as_bytes()).ok()?;
        Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// What a token says, if it was signed with this key and counts at `now`.
    pub(crate) fn verify(&self, token: &str, now: Timestamp) -> Option<Claims> {
        if token.len() > MAX_TOKEN {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        if URL_SAFE_NO_PAD.decode(header).ok()? != HEADER.as_bytes() {
            return None;
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.key.public_key().as_ref());
        key.verify(signed.as_bytes(), &signature).ok()?;
        let claims: Claims = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
        (claims.nbf <= now.as_second() && now.as_second() < claims.exp).then_some(claims)
    }
}

fn new_key() -> Vec<u8> {
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
    key.expect("the machine has random numbers").as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn claims() -> Claims {
        Claims::new(Grant {
            plane: PlaneName::new("a").unwrap(),
            namespace: "n".to_owned(),
            account: Reference { name: "s".to_owned(), uid: "u".to_owned() },
            bound: None,
            audiences: Vec::new(),
            now: at(1000),
            seconds: 600,
            id: "j".to_owned(),
        })
    }

    #[test]
    fn a_token_counts_between_its_times() {
        let signer = Signer::generate();
        let token = signer.sign(&claims()).unwrap();
        assert_eq!(signer.verify(&token, at(999)), None);
        assert_eq!(signer.verify(&token, at(1000)), Some(claims()));
        assert_eq!(signer.verify(&token, at(1599)), Some(claims()));
        assert_eq!(signer.verify(&token, at(1600)), None);
    }

    #[test]
    fn no_other_token_counts() {
        let signer = Signer::generate();
        let token = signer.sign(&claims()).unwrap();
        assert_eq!(Signer::generate().verify(&token, at(1000)), None, "another key");
        let parts: Vec<&str> = token.split('.').collect();
        let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"JWT"}"#);
        let forged = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&Claims { exp: 9999, ..claims() }).unwrap());
        for bad in [
            format!("{none}.{}.", parts[1]),
            format!("{none}.{}.{}", parts[1], parts[2]),
            format!("{}.{forged}.{}", parts[0], parts[2]),
            format!("{}.{}", parts[0], parts[1]),
            format!("{token}."),
            String::new(),
            "..".to_owned(),
            "x".repeat(MAX_TOKEN + 1),
        ] {
            assert_eq!(signer.verify(&bad, at(1000)), None, "{bad:.40}");
        }
    }

    #[test]
    fn a_token_says_which_plane_and_which_audience_it_is_for() {
        let plane = |name| PlaneName::new(name).unwrap();
        let own = claims();
        assert!(own.is_of(&plane("a")) && own.is_for(&plane("a"), &[]));
        assert!(!own.is_of(&plane("b")) && !own.is_for(&plane("b"), &[]));
        let vault = Claims { aud: vec!["vault".to_owned()], ..claims() };
        assert!(!vault.is_for(&plane("a"), &[]) && vault.is_for(&plane("a"), &["vault".to_owned()]));
        let identity = own.identity();
        assert_eq!(identity.user, "system:serviceaccount:n:s");
        let groups = ["system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated"];
        assert_eq!(identity.groups, groups);
    }
}
