//! Which addresses may be reached. Links and webhooks are written by others, so connections to them
//! go to public addresses only: a name is looked up once, addresses inside are dropped, and the
//! connection is made to one of those that are left.

use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use ipnet::IpNet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_service::Service;

/// Whether an address belongs to the public internet.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let inside = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation();
    // This network, carrier-grade NAT, protocol assignments, 6to4 relays, benchmarks, reserved and
    // broadcast.
    let special = a == 0
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19))
        || a >= 240;
    !(inside || special)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let inner = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    if let Some(v4) = address.to_ipv4_mapped() {
        return is_public_v4(v4);
    }
    match parts {
        // NAT64 and 6to4 lead to the address inside them.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(inner(high, low)),
        [0x2002, high, low, ..] => is_public_v4(inner(high, low)),
        // Teredo, benchmarks, documentation.
        [0x2001, 0 | 2 | 0x0db8, ..] => false,
        // Only what was given to the world: no loopback, private, link-local, multicast or
        // unassigned.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// Whether a name is one that only a network inside knows: without a dot, or below a name that is
/// nobody's on the internet.
pub fn is_inside_name(host: &str) -> bool {
    const INSIDE: &[&str] =
        &["localhost", "local", "internal", "intranet", "lan", "corp", "home", "private", "home.arpa"];
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let below = |end: &&str| host.strip_suffix(*end).is_some_and(|name| name.is_empty() || name.ends_with('.'));
    !host.contains('.') || INSIDE.iter().any(below)
}

/// The addresses of a name, where somebody other than the system says which: a test. `None`: the
/// system is asked.
pub type NameSource = Arc<dyn Fn(&str) -> Option<Vec<IpAddr>> + Send + Sync>;

/// Where a client may connect to.
#[derive(Clone, Debug)]
pub enum Reachable {
    /// To every address: those of providers are the operator's own words.
    Everything,
    /// To the public internet, and to these addresses inside.
    Outside(Arc<[IpNet]>),
}

impl Reachable {
    /// Whether names may lead inside, as far as they say it themselves.
    pub fn lets_inside_names(&self) -> bool {
        match self {
            Reachable::Everything => true,
            Reachable::Outside(also) => !also.is_empty(),
        }
    }

    pub fn lets(&self, address: IpAddr) -> bool {
        match self {
            Reachable::Everything => true,
            Reachable::Outside(also) => {
                is_public(address) || also.iter().any(|net| net.contains(&address.to_canonical()))
            }
        }
    }
}

/// Looks names up, and keeps the addresses that may be reached.
#[derive(Clone)]
pub(crate) struct Resolver {
    inner: GaiResolver,
    reachable: Reachable,
    names: Option<NameSource>,
}

impl Resolver {
    pub fn new(reachable: Reachable, names: Option<NameSource>) -> Resolver {
        Resolver { inner: GaiResolver::new(), reachable, names }
    }
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let known = self.names.as_ref().and_then(|names| names(name.as_str()));
        let looking = self.inner.call(name);
        let reachable = self.reachable.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = match known {
                Some(known) => known.into_iter().map(|address| SocketAddr::new(address, 0)).collect(),
                None => looking.await?.collect(),
            };
            let reached: Vec<SocketAddr> = found.into_iter().filter(|one| reachable.lets(one.ip())).collect();
            if reached.is_empty() {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, "no address that may be reached"));
            }
            Ok(reached.into_iter())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inside_and_outside() {
        for (text, public) in [
            ("8.8.8.8", true),
            ("1.1.1.1", true),
            ("2606:4700:4700::1111", true),
            ("127.0.0.1", false),
            ("127.8.9.1", false),
            ("0.0.0.0", false),
            ("10.0.0.1", false),
            ("172.16.0.1", false),
            ("172.32.0.1", true),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("100.128.0.1", true),
            ("192.0.0.8", false),
            ("192.0.2.1", false),
            ("198.18.0.1", false),
            ("224.0.0.1", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("::", false),
            ("::1", false),
            ("::ffff:10.0.0.1", false),
            ("::ffff:8.8.8.8", true),
            ("64:ff9b::7f00:1", false),
            ("2002:7f00:1::", false),
            ("2001:db8::1", false),
            ("fc00::1", false),
            ("fd12::1", false),
            ("fe80::1", false),
            ("ff02::1", false),
        ] {
            assert_eq!(is_public(text.parse().expect("an address")), public, "{text}");
        }
    }

    #[test]
    fn names_of_networks_inside() {
        for (name, inside) in [
            ("localhost", true),
            ("LOCALHOST.", true),
            ("a.localhost", true),
            ("metadata", true),
            ("metadata.google.internal", true),
            ("printer.local", true),
            ("router.home.arpa", true),
            ("media.example", false),
            ("internal.example.com", false),
            ("mylocal.example", false),
        ] {
            assert_eq!(is_inside_name(name), inside, "{name}");
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_inside_has_no_address() {
        let name = || "localhost".parse().expect("a name");
        assert!(Resolver::new(Reachable::Everything, None).call(name()).await.expect("addresses").count() > 0);
        let outside = Reachable::Outside(Arc::new([]));
        let refused = Resolver::new(outside, None).call(name()).await.expect_err("nothing public");
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    }

    #[tokio::test]
    async fn of_a_name_with_both_kinds_the_public_addresses_are_used() {
        let listed = ["10.0.0.1", "8.8.8.8", "::1"].map(|text| text.parse().expect("an address"));
        let names: NameSource = Arc::new(move |name| (name == "mixed.example").then(|| listed.to_vec()));
        let name = || "mixed.example".parse().expect("a name");
        let found = |reachable| Resolver::new(reachable, Some(names.clone())).call(name());
        assert_eq!(found(Reachable::Everything).await.expect("addresses").count(), 3);
        let outside = Reachable::Outside(Arc::new([]));
        let shown: Vec<_> = found(outside).await.expect("an address").map(|one| one.ip().to_string()).collect();
        assert_eq!(shown, ["8.8.8.8"]);
    }

    #[test]
    fn an_operator_may_let_in_what_is_his() {
        let reachable = Reachable::Outside(Arc::new(["10.1.0.0/16".parse().expect("a range")]));
        for (text, may) in [
            ("8.8.8.8", true),
            ("10.1.2.3", true),
            ("::ffff:10.1.2.3", true),
            ("10.2.0.1", false),
            ("127.0.0.1", false),
            ("169.254.169.254", false),
        ] {
            assert_eq!(reachable.lets(text.parse().expect("an address")), may, "{text}");
        }
    }
}
