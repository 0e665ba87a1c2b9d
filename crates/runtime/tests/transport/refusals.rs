//! What is sent again and what is not, against a server that answers frame by frame.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use compute_apiserver::Authority;
use compute_runtime::transport::{Error, Options, SharedHost};
use h2::server::SendResponse;
use http::{Method, Request, Response};
use kube::Config;
use kube::client::Body;
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tower::Service as _;

use super::options;
use crate::support::soon;

/// What becomes of a request.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Ok,
    /// The stream is reset.
    Reset(h2::Reason),
    /// The connection is closed without a word.
    Close,
    /// Nothing comes.
    Silence,
}

struct Script {
    config: Config,
    seen: Arc<Mutex<Vec<(Method, String)>>>,
}

/// A server that answers the requests that come, in their order, as it is told; then with `Ok`.
async fn script(answers: &[Answer]) -> Script {
    let authority = Authority::generate("test authority").unwrap();
    let issued = authority.issue_server(&["127.0.0.1".to_owned()]).unwrap();
    let chain =
        CertificateDer::pem_slice_iter(issued.certificate.as_bytes()).collect::<Result<_, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = Config::new(format!("https://{}", listener.local_addr().unwrap()).parse().unwrap());
    let root = CertificateDer::from_pem_slice(authority.certificate().as_bytes()).unwrap();
    config.root_cert = Some(vec![root.to_vec()]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let answers = Arc::new(Mutex::new(VecDeque::from(answers.to_vec())));
    let taken = seen.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, answers, taken) = (acceptor.clone(), answers.clone(), taken.clone());
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let mut connection = h2::server::handshake(stream).await.unwrap();
                let mut unanswered: Vec<SendResponse<Bytes>> = Vec::new();
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    let body = read(request, &taken);
                    match answers.lock().pop_front().unwrap_or(Answer::Ok) {
                        Answer::Ok => {
                            let mut stream = respond.send_response(Response::new(()), false).unwrap();
                            tokio::spawn(async move {
                                let sent = body.await;
                                stream.send_data(sent, true)
                            });
                        }
                        Answer::Reset(reason) => respond.send_reset(reason),
                        Answer::Close => return,
                        Answer::Silence => unanswered.push(respond),
                    }
                }
            });
        }
    });
    Script { config, seen }
}

/// The request's body, and a note that it has come.
fn read(
    request: Request<h2::RecvStream>,
    seen: &Mutex<Vec<(Method, String)>>,
) -> impl Future<Output = Bytes> + use<> {
    seen.lock().push((request.method().clone(), request.uri().path().to_owned()));
    let mut body = request.into_body();
    async move {
        let mut all = Vec::new();
        while let Some(Ok(data)) = body.data().await {
            body.flow_control().release_capacity(data.len()).unwrap();
            all.extend_from_slice(&data);
        }
        all.into()
    }
}

async fn post(host: &SharedHost, body: impl Into<Bytes>) -> Result<Bytes, Error> {
    let mut service = host.service("/planes/test");
    let request = Request::post("/api/v1/namespaces").body(Body::from(body.into())).unwrap();
    let answer = soon("an answer", service.call(request)).await?;
    Ok(http_body_util::BodyExt::collect(answer.into_body()).await?.to_bytes())
}

#[tokio::test]
async fn a_refused_stream_is_sent_again() {
    let script = script(&[Answer::Reset(h2::Reason::REFUSED_STREAM); 3]).await;
    let host = SharedHost::new(script.config.clone(), &options()).unwrap();
    assert_eq!(post(&host, "hello").await.unwrap(), "hello");
    assert_eq!(
        script.seen.lock().as_slice(),
        vec![(Method::POST, "/planes/test/api/v1/namespaces".into()); 4]
    );
}

#[tokio::test]
async fn a_server_that_refuses_for_ever_is_believed_in_the_end() {
    let script = script(&[Answer::Reset(h2::Reason::REFUSED_STREAM); 100]).await;
    let host = SharedHost::new(script.config.clone(), &options()).unwrap();
    let error = post(&host, "hello").await.unwrap_err();
    assert!(error.is_unsent(), "{error:?}");
    assert_eq!(script.seen.lock().len(), 4);
}

#[tokio::test]
async fn what_may_have_been_carried_out_is_not_sent_again() {
    for answer in
        [Answer::Reset(h2::Reason::INTERNAL_ERROR), Answer::Reset(h2::Reason::CANCEL), Answer::Close]
    {
        let script = script(&[answer]).await;
        let host = SharedHost::new(script.config.clone(), &options()).unwrap();
        let error = post(&host, "hello").await.unwrap_err();
        assert!(!error.is_unsent(), "{answer:?}: {error:?}");
        assert_eq!(script.seen.lock().len(), 1, "{answer:?}");
        assert_eq!(host.stats().streams, 0);
        assert_eq!(post(&host, "again").await.unwrap(), "again", "the next request finds a way");
    }
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_given_up() {
    let script = script(&[Answer::Silence]).await;
    let short = Options { head_timeout: Duration::from_millis(50), ..options() };
    let host = SharedHost::new(script.config.clone(), &short).unwrap();
    let error = post(&host, "hello").await.unwrap_err();
    assert!(matches!(error, Error::HeadTimeout) && !error.is_unsent(), "{error:?}");
    assert_eq!(host.stats().streams, 0);
}

#[tokio::test]
async fn large_bodies_pass_both_ways_through_windows() {
    let script = script(&[]).await;
    let host = SharedHost::new(script.config.clone(), &options()).unwrap();
    let large = Bytes::from(vec![7; 5 << 20]);
    assert_eq!(post(&host, large.clone()).await.unwrap(), large);
}
