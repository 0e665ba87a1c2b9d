//! Client certificates: the common name is the user, organizations are its groups, as Kubernetes has it.
//!
//! The chain was verified in the handshake, against the authority that the embedder named. A connection may outlive its
//! certificate, so the end of its time is looked at again for each request.

use jiff::Timestamp;
use x509_parser::oid_registry::{Oid, asn1_rs::oid};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::{Access, Holder, Identity};

/// The attribute of a subject that holds the user's uid.
const UID: Oid<'static> = oid!(1.3.6.1.4.1.57683.2);

/// Who shows a certificate, and until when it counts.
#[derive(Clone, Debug)]
pub(crate) struct ClientCertificate {
    holder: Holder,
    expires: Timestamp,
}

impl ClientCertificate {
    /// Reads a verified certificate; none if it names nobody.
    pub(crate) fn read(der: &[u8], access: Access) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let subject = certificate.subject();
        let text =
            |value: &x509_parser::x509::AttributeTypeAndValue<'_>| value.as_str().ok().map(str::to_owned);
        let user = subject.iter_common_name().next().and_then(text).filter(|name| !name.is_empty())?;
        let identity = Identity {
            user,
            uid: subject.iter_by_oid(&UID).next().and_then(text).unwrap_or_default(),
            groups: subject.iter_organization().filter_map(text).collect(),
            ..Identity::default()
        };
        let expires = Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()?;
        Some(Self { holder: Holder::new(identity, access), expires })
    }

    /// Who shows it, if it still counts.
    pub(crate) fn holder(&self, now: Timestamp) -> Option<&Holder> {
        (now < self.expires).then_some(&self.holder)
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    /// Organizations `team` and `ops`, common name `ann`, uid `u-1`, until October 2126.
    const CERTIFICATE: &str = concat!(
        "MIIBejCCASECFBgennfrfCj9FAh6KlWeUEJOXHeGMAoGCCqGSM49BAMCMD8xDTALBgNVBAoMBHRlYW0xDDAKBgNVBAoMA29wczEM",
        "MAoGA1UEAwwDYW5uMRIwEAYJKwYBBAGDwlMCDAN1LTEwIBcNMjYxMTE2MDAxMjEwWhgPMjEyNjEwMjMwMDEyMTBaMD8xDTALBgNV",
        "BAoMBHRlYW0xDDAKBgNVBAoMA29wczEMMAoGA1UEAwwDYW5uMRIwEAYJKwYBBAGDwlMCDAN1LTEwWTATBgcqhkjOPQIBBggqhkjO",
        "PQMBBwNCAAQNhtnAmjVi/ELGO+yG22qCJfUme4TskYunw64j2omY3183v0iW89P+fkz19CgLariKFaHsjGBLDEEQgxVDe8sRMAoG",
        "CCqGSM49BAMCA0cAMEQCIFADGH4w2cSzOC/lTuZixyTJ4ZQHfH2OmIEFkSeCef2sAiBVHVd+KbbnWcxgF68RlodSfofUNrhVMu04",
        "4lm+qR8SmQ==",
    );

    #[test]
    fn the_subject_says_who_it_is() {
        let der = STANDARD.decode(CERTIFICATE).unwrap();
        let read = ClientCertificate::read(&der, Access::AllPlanes).unwrap();
        let at = |time: &str| read.holder(time.parse().unwrap());
        let identity = &at("2126-01-01T00:00:00Z").unwrap().identity;
        assert_eq!((identity.user.as_str(), identity.uid.as_str()), ("ann", "u-1"));
        assert_eq!(identity.groups, ["team", "ops", "system:authenticated"]);
        assert!(at("2127-01-01T00:00:00Z").is_none());
        assert!(ClientCertificate::read(&der[1..], Access::AllPlanes).is_none());
    }
}
