//! Credentials that are renewed while managers run.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::objects::{placement, workload};
use crate::real::RealStack;
use crate::stack::{Stack as _, Worker};
use crate::view::View;
use crate::wait::eventually;

/// Every token is replaced and the old ones count no more, and the webhook server gets another certificate: nobody has to restart anything.
pub async fn credentials_are_renewed_while_work_goes_on(stack: &RealStack) {
    let view = View::new(stack, "renewed").await;
    let cities = stack.cities();
    let (here, there) = (cities[0].as_str(), cities[1].as_str());
    let names = [here, there].map(|city| format!("web-main-{}", city.to_lowercase()));
    view.create(&workload("web", &[here, there], 1)).await;
    view.until_ready("web", &[(&names[0], 1), (&names[1], 1)]).await;

    let pem = stack.write_webhook_certificate();
    let renewed = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    for worker in [Worker::Management, Worker::Cell(here.to_owned()), Worker::Cell(there.to_owned())] {
        stack.rotate_tokens(&worker).await;
    }
    view.set_placements("web", &[placement("main", &[here, there], 2)]).await;
    view.until_ready("web", &[(&names[0], 2), (&names[1], 2)]).await;
    eventually("the new certificate is shown", async || {
        let shown = stack.webhook_certificate().await?;
        if shown == renewed { Ok(()) } else { Err("the old one is".to_owned()) }
    })
    .await;
    view.create(&workload("new", &[here], 1)).await;
    view.until_ready("new", &[(&format!("new-main-{}", here.to_lowercase()), 1)]).await;
    for name in ["web", "new"] {
        view.delete(name).await;
        view.until_gone(name).await;
    }
    stack.assert_all_run();
}

impl RealStack {
    /// The certificate that the webhook server shows now.
    async fn webhook_certificate(&self) -> Result<CertificateDer<'static>, String> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority_pem().as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(self.webhook_address()).await.map_err(|error| error.to_string())?;
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        let stream = stream.map_err(|error| error.to_string())?;
        let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        shown.map(|shown| shown.clone().into_owned()).ok_or_else(|| "none is shown".to_owned())
    }
}
