//! The server's certificate, re-read when its files change.
//!
//! A new connection is shown what the files held at the last look. Files that cannot be read or do not belong together (one of
//! them is written before the other) change nothing, and are looked at again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file is not PEM.
    #[error("{path} is not valid PEM")]
    Pem {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// Certificate and key do not work together.
    #[error("the certificate in {certificate} and the key in {key} cannot be used together")]
    Pair {
        /// File of the certificate.
        certificate: PathBuf,
        /// File of the key.
        key: PathBuf,
        /// Why.
        #[source]
        source: rustls::Error,
    },
}

/// A certificate and its key, in two files.
pub struct Certificates {
    certificate: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
    held: Vec<u8>,
    shown: Arc<Shown>,
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificates").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// What new connections are shown.
#[derive(Debug)]
struct Shown(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().clone())
    }
}

impl Certificates {
    /// Reads a chain of certificates and the key of the first, both PEM.
    ///
    /// # Errors
    ///
    /// If they cannot be read or used.
    pub async fn open(certificate: PathBuf, key: PathBuf) -> Result<Self, CertificateError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let (held, pair) = load(&certificate, &key, &provider, &[]).await?;
        let pair = pair.expect("files that were never read have changed");
        Ok(Self { certificate, key, provider, held, shown: Arc::new(Shown(RwLock::new(Arc::new(pair)))) })
    }

    /// What a TLS server needs: it shows what the files held at the last look.
    ///
    /// # Errors
    ///
    /// If TLS cannot be set up.
    pub fn config(&self) -> Result<Arc<rustls::ServerConfig>, rustls::Error> {
        let mut config = rustls::ServerConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(self.shown.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Looks at the files again and again, for as long as it is polled.
    pub async fn follow(mut self, every: Duration) {
        let mut complained = String::new();
        loop {
            tokio::time::sleep(every).await;
            match load(&self.certificate, &self.key, &self.provider, &self.held).await {
                Ok((_, None)) => complained.clear(),
                Ok((held, Some(pair))) => {
                    self.held = held;
                    *self.shown.0.write() = Arc::new(pair);
                    complained.clear();
                    tracing::info!(certificate = %self.certificate.display(), "there is a new server certificate");
                }
                Err(error) => {
                    let cause =
                        std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
                    // The same trouble is told once.
                    let told = format!("{error}: {cause}");
                    if told != complained {
                        tracing::error!(%error, cause, "the server certificate is not renewed");
                        complained = told;
                    }
                }
            }
        }
    }
}

/// What the files hold, and the pair in them if that is not what they held before.
async fn load(
    certificate: &Path,
    key: &Path,
    provider: &CryptoProvider,
    before: &[u8],
) -> Result<(Vec<u8>, Option<CertifiedKey>), CertificateError> {
    let read = async |path: &Path| {
        tokio::fs::read(path).await.map_err(|source| CertificateError::Read { path: path.to_owned(), source })
    };
    let (chain, secret) = (read(certificate).await?, read(key).await?);
    let held = [&*chain, b"\0", &*secret].concat();
    if held == before {
        return Ok((held, None));
    }
    let pem = |path: &Path| {
        let path = path.to_owned();
        move |source| CertificateError::Pem { path, source }
    };
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(&chain).collect::<Result<_, _>>().map_err(pem(certificate))?;
    let secret = PrivateKeyDer::from_pem_slice(&secret).map_err(pem(key))?;
    let pair = CertifiedKey::from_der(chain, secret, provider).map_err(|source| CertificateError::Pair {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        source,
    })?;
    Ok((held, Some(pair)))
}
