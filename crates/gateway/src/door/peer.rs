//! The other end of a connection, as a request carries it.

use super::connections::Seat;
use http::request::Parts;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The other end of the connection, put into each request by the server: its address, and its place
/// among all connections.
#[derive(Clone)]
pub struct Peer {
    address: SocketAddr,
    /// Without one the request came over no connection of a server: in a simulation.
    seat: Option<Arc<Seat>>,
}

impl Peer {
    pub fn new(address: SocketAddr, seat: Option<Arc<Seat>>) -> Peer {
        Peer { address, seat }
    }

    pub fn ip(&self) -> IpAddr {
        self.address.ip().to_canonical()
    }

    /// A valid key was seen.
    pub fn prove(parts: &Parts) {
        if let Some(seat) = parts.extensions.get::<Peer>().and_then(|peer| peer.seat.as_ref()) {
            seat.prove();
        }
    }
}
