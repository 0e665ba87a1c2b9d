//! A certificate authority for a server that generates its own credentials.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};

/// Certificates or keys could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a certificate")]
pub struct PkiError(#[from] rcgen::Error);

/// A certificate authority of our own; its key never leaves the process.
pub struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

impl Authority {
    /// A new authority with a fresh key.
    pub fn generate(name: &str) -> Result<Self, PkiError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let pem = params.self_signed(&key)?.pem();
        Ok(Self { pem, issuer: Issuer::new(params, key) })
    }

    /// The authority's certificate, for clients to trust.
    pub fn certificate(&self) -> &str {
        &self.pem
    }

    /// A client certificate for a user who may be in a group, which counts up to `expires`.
    pub fn issue_client(
        &self,
        user: &str,
        group: Option<&str>,
        expires: jiff::Timestamp,
    ) -> Result<Issued, PkiError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = named(user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        let seconds = expires.as_second();
        params.not_after =
            rcgen::date_time_ymd(1970, 1, 1) + std::time::Duration::from_secs(seconds.max(0).unsigned_abs());
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Issued { certificate, key: key.serialize_pem() })
    }

    /// A server certificate for these host names and addresses.
    pub fn issue_server(&self, names: &[String]) -> Result<Issued, PkiError> {
        let mut params = CertificateParams::new(names.to_vec())?;
        params.distinguished_name = named(names.first().map_or("server", String::as_str));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Issued { certificate, key: key.serialize_pem() })
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authority")
    }
}

impl std::fmt::Debug for Issued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Issued")
    }
}
