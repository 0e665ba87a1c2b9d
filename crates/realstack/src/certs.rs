//! Certificates, keys and tokens. Each plane has an authority of its own, so that no credential counts on two planes.
//!
//! They carry rcgen's default validity, which no clock is needed for: the stack lives for an afternoon.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};

use crate::Error;

/// An authority that signs certificates, as it is kept in files.
#[derive(Clone, Serialize, Deserialize)]
pub struct Authority {
    /// Its common name.
    pub name: String,
    /// Its certificate, for others to trust.
    pub certificate_pem: String,
    /// Its private key.
    pub key_pem: String,
}

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub struct Certificate {
    /// The certificate.
    pub certificate_pem: String,
    /// The private key.
    pub key_pem: String,
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

impl Authority {
    /// A new authority with a fresh key.
    pub fn generate(name: &str) -> Result<Self, Error> {
        let key = KeyPair::generate()?;
        let certificate_pem = authority(name).self_signed(&key)?.pem();
        Ok(Self { name: name.to_owned(), certificate_pem, key_pem: key.serialize_pem() })
    }

    fn sign(&self, mut params: CertificateParams) -> Result<Certificate, Error> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let issuer = Issuer::new(authority(&self.name), KeyPair::from_pem(&self.key_pem)?);
        let key = KeyPair::generate()?;
        let certificate_pem = params.signed_by(&key, &issuer)?.pem();
        Ok(Certificate { certificate_pem, key_pem: key.serialize_pem() })
    }

    /// A certificate that makes its holder `user`, in `group` if one is given.
    pub fn client(&self, user: &str, group: Option<&str>) -> Result<Certificate, Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name = named(user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    /// A certificate for a server on loopback that also goes by these names.
    pub fn server(&self, names: &[&str]) -> Result<Certificate, Error> {
        let all = ["localhost", "127.0.0.1"].iter().chain(names).map(|name| (*name).to_owned());
        let mut params = CertificateParams::new(all.collect::<Vec<_>>())?;
        params.distinguished_name = named(names.first().unwrap_or(&"localhost"));
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }
}

/// A key pair that signs service account tokens: private and public key, as PEM.
pub(crate) fn key_pair() -> Result<(String, String), Error> {
    let key = KeyPair::generate()?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}

/// A token that cannot be guessed.
pub(crate) fn token() -> Result<String, Error> {
    Ok(URL_SAFE_NO_PAD.encode(random::<32>()?))
}

/// Random bytes.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Error::NoRandom)?;
    Ok(bytes)
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Authority({})", self.name)
    }
}

impl std::fmt::Debug for Certificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Certificate")
    }
}
