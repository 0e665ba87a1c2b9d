//! One address for several servers: who connects gets to the first of them that takes a connection, as behind a Service.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// An address in front of others. It ends, with all its connections, when this is dropped.
pub struct Balancer {
    /// Where it listens.
    pub address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Balancer {
    /// Listens on a free port in front of these addresses.
    pub async fn start(targets: Vec<SocketAddr>) -> Self {
        let socket = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = socket.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let mut stream = tokio::select! {
                    biased;
                    Some(_) = connections.join_next() => continue,
                    accepted = socket.accept() => match accepted {
                        Ok((stream, _)) => stream,
                        Err(_) => continue,
                    },
                };
                let targets = targets.clone();
                connections.spawn(async move {
                    for target in targets {
                        if let Ok(mut server) = TcpStream::connect(target).await {
                            let _ = copy_bidirectional(&mut stream, &mut server).await;
                            return;
                        }
                    }
                });
            }
        });
        Self { address, serving }
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
