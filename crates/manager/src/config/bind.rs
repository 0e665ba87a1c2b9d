//! Addresses to listen on.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::TcpListener;

use super::Mistake;

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    /// What names it in complaints.
    field: String,
    /// The first of these that the machine has.
    candidates: Vec<SocketAddr>,
}

impl Bind {
    /// Reads `host:port`, or `:port` for all addresses of the machine; none for `0`.
    pub(super) fn read(field: &str, text: &str) -> Result<Option<Self>, Mistake> {
        if text == "0" {
            return Ok(None);
        }
        let candidates = match text.strip_prefix(':') {
            Some(port) => {
                let port = port.parse().map_err(|_| wrong(field, text))?;
                // The first takes both families, where the machine has both.
                [IpAddr::from(Ipv6Addr::UNSPECIFIED), IpAddr::from(Ipv4Addr::UNSPECIFIED)]
                    .map(|all| SocketAddr::new(all, port))
                    .to_vec()
            }
            None => vec![text.parse().map_err(|_| wrong(field, text))?],
        };
        Ok(Some(Self { field: field.to_owned(), candidates }))
    }

    /// What names it in complaints.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Whether the two want the same port of the same address.
    pub(super) fn meets(&self, other: &Self) -> bool {
        let meet = |a: &SocketAddr, b: &SocketAddr| a == b && a.port() != 0;
        self.candidates.iter().any(|a| other.candidates.iter().any(|b| meet(a, b)))
    }

    /// Listens.
    ///
    /// # Errors
    ///
    /// If the address is not this machine's, or somebody else has it.
    pub async fn listen(&self) -> Result<TcpListener, Mistake> {
        let mut last = None;
        for address in &self.candidates {
            match TcpListener::bind(address).await {
                Ok(listener) => return Ok(listener),
                Err(error) => last = Some((address, error)),
            }
        }
        let (address, error) = last.expect("there is at least one candidate");
        Err(Mistake::because(&self.field, &format!("cannot listen on {address}"), &error))
    }
}

fn wrong(field: &str, text: &str) -> Mistake {
    Mistake::new(
        field,
        format!(
            "{text:?} is not an address; write :8081, 127.0.0.1:8081 or [::1]:8081, or \"0\" to serve nothing"
        ),
    )
}
