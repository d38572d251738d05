//! The HTTP client: one pool, bounded waits, no redirects, Nagle off.

use crate::cable::{Connector, Timed};
use crate::http1::{Connection, IncomingBody, Pool, Unanswered, Upgraded, Written};
use crate::reach::{NameSource, Reachable, Resolver};
use crate::{ChatAsk, Fault, Outgoing, Payload, Provider, ReplyBody, WholeReply, is_encoded};
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderName, HeaderValue, Response, StatusCode, Uri};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_rustls::builderstates::WantsSchemes;
use hyper_util::client::legacy::connect::HttpConnector;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tower_service::Service as _;

/// How connections are made and reused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSettings {
    /// Name lookup, TCP and TLS together.
    pub connect_timeout: Duration,
    /// How long an unused connection stays open.
    pub pool_idle: Duration,
    pub pool_max_idle_per_host: usize,
}

impl Default for ClientSettings {
    fn default() -> Self {
        ClientSettings {
            connect_timeout: Duration::from_secs(5),
            pool_idle: Duration::from_secs(60),
            pool_max_idle_per_host: 1024,
        }
    }
}

/// Cheap to clone; clones share the pool. Connections live on the runtime that made them.
#[derive(Clone, Debug)]
pub struct Client {
    connector: Connector,
    pool: Arc<Pool>,
    reachable: Reachable,
    clock: WallClock,
}

/// Milliseconds since 1970, for signatures.
#[derive(Clone)]
struct WallClock(Arc<dyn Fn() -> i64 + Send + Sync>);

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WallClock")
    }
}

/// No server closes a connection that has been idle for as little as this.
const RECENT: Duration = Duration::from_secs(1);

/// Which connection a request goes over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    /// One that waits, where there is one.
    Any,
    /// One that was used within [`RECENT`], or a new one.
    Recent,
    New,
    /// A new one that changes its protocol and is never used again.
    Upgrade,
}

/// What became of a request to change the protocol.
#[derive(Debug)]
pub enum Upgrade {
    /// Status 101: from here on the connection is the caller's.
    Switched(Response<Upgraded>),
    /// Any other status, as for any other request.
    Refused(Response<IncomingBody>),
}

/// Longest error text read from a provider.
const ERROR_BYTES: usize = 64 << 10;
/// Longest wait for the rest of an error text.
const ERROR_WAIT: Duration = Duration::from_secs(5);

impl Client {
    pub fn new(settings: ClientSettings) -> Client {
        Client::reaching(settings, Reachable::Everything, None)
    }

    /// A client for addresses that others wrote down: it connects to the public internet only.
    pub fn public(settings: ClientSettings) -> Client {
        Client::public_by(settings, None)
    }

    /// The same, with names that somebody else than the system knows.
    pub fn public_by(settings: ClientSettings, names: Option<NameSource>) -> Client {
        Client::reaching(settings, Reachable::Outside(Arc::new([])), names)
    }

    /// A client that connects to these addresses only.
    pub fn reaching(settings: ClientSettings, reachable: Reachable, names: Option<NameSource>) -> Client {
        Client::over(connector(&settings, reachable.clone(), names), &settings, reachable)
    }

    /// A client that trusts certificates of a test.
    #[cfg(feature = "testing")]
    pub fn trusting(settings: ClientSettings, roots: rustls::RootCertStore) -> Client {
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(ring).with_safe_default_protocol_versions();
        let config = config.expect("ring offers them").with_root_certificates(roots).with_no_client_auth();
        let tls = HttpsConnectorBuilder::new().with_tls_config(config);
        let connector = over_tls(tls, &settings, Reachable::Everything, None);
        Client::over(connector, &settings, Reachable::Everything)
    }

    /// A client whose connections are made by a simulation.
    #[cfg(feature = "testing")]
    pub fn in_memory(dial: crate::Dial) -> Client {
        Client::over(Connector::Memory(dial), &ClientSettings::default(), Reachable::Everything)
    }

    fn over(connector: Connector, settings: &ClientSettings, reachable: Reachable) -> Client {
        let pool = Pool::new(settings.pool_max_idle_per_host, settings.pool_idle);
        Client { connector, pool: Arc::new(pool), reachable, clock: WallClock(Arc::new(|| 0)) }
    }

    /// The same client, which signs requests by this clock: milliseconds since 1970.
    pub fn by_clock(self, now: impl Fn() -> i64 + Send + Sync + 'static) -> Client {
        Client { clock: WallClock(Arc::new(now)), ..self }
    }

    /// The request as it is sent: signed, where the provider's key is not sent as it is.
    async fn signed(&self, provider: &Provider, request: Outgoing) -> Result<Outgoing, Fault> {
        match provider.signer() {
            None => Ok(request),
            // Apart: nearly no call is signed, and every one would carry room for it.
            Some(signer) => Box::pin(signer.sign(self, request, (self.clock.0)())).await,
        }
    }

    /// Whether this client goes to an address that is written out; a name is judged when it is
    /// looked up.
    pub fn may_go_to(&self, host: &str) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host.parse().map_or(true, |address| self.reachable.lets(address))
    }

    pub(crate) fn lets_inside_names(&self) -> bool {
        self.reachable.lets_inside_names()
    }

    /// Sends a request and waits for the headers of the reply, whatever its status.
    pub async fn send(&self, provider: &Provider, request: Outgoing) -> Result<Response<IncomingBody>, Fault> {
        let request = self.signed(provider, request).await?;
        self.ask(request, provider.settings.first_byte).await
    }

    /// Asks for a conversation, with a header of its own where there is one, and waits for the
    /// headers of the reply, whatever its status.
    pub async fn converse(
        &self,
        provider: &Provider,
        ask: ChatAsk<'_>,
        own: Option<(HeaderName, HeaderValue)>,
    ) -> Result<Response<IncomingBody>, Fault> {
        let patience = provider.settings.first_byte;
        if own.is_none()
            && let Some((uri, written)) = provider.prepared_chat(&ask)
        {
            return within(patience, self.exchange(uri, written, Over::Any)).await;
        }
        let mut request = provider.chat(ask).ok_or_else(Fault::unreachable)?;
        if let Some((name, value)) = own {
            request.headers_mut().insert(name, value);
        }
        // Apart: most conversations go the other way, and every one would carry room for this.
        Box::pin(self.send(provider, request)).await
    }

    /// Asks to change the protocol of a connection, as a WebSocket does. The request has an
    /// `Upgrade` header with one protocol and whatever belongs to its handshake; what the reply's
    /// headers prove (`Sec-WebSocket-Accept`) is the caller's to check. The connection is a new
    /// one, and the reply has to come in the time of any other.
    pub async fn upgrade(&self, provider: &Provider, request: Outgoing) -> Result<Upgrade, Fault> {
        let request = self.signed(provider, request).await?;
        let reply = self.ask_over(request, provider.settings.first_byte, Over::Upgrade).await?;
        if reply.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Ok(Upgrade::Refused(reply));
        }
        let (head, answer) = reply.into_parts();
        let stream = answer.into_upgraded().ok_or_else(Fault::reset)?;
        Ok(Upgrade::Switched(Response::from_parts(head, stream)))
    }

    /// The same as [`Client::send`] over a new connection. One that is reused may be closed by the
    /// provider in the moment it is written to, and then nobody knows whether the request was read:
    /// what must not be sent twice is worth a connection of its own.
    pub async fn send_fresh(&self, provider: &Provider, request: Outgoing) -> Result<Response<IncomingBody>, Fault> {
        let request = self.signed(provider, request).await?;
        self.ask_over(request, provider.settings.first_byte, Over::New).await
    }

    /// The same as [`Client::send`] over a new connection or one that was used a moment ago.
    /// Servers close connections that were idle for seconds, never for less: only a provider that
    /// stops in this moment can leave it open whether the request was read. It then also loses
    /// what it is making for others, so a new connection would save next to nothing.
    pub async fn send_recent(&self, provider: &Provider, request: Outgoing) -> Result<Response<IncomingBody>, Fault> {
        let request = self.signed(provider, request).await?;
        self.ask_over(request, provider.settings.first_byte, Over::Recent).await
    }

    /// The same as [`Client::send`] without a provider: nothing is added to the request, and the
    /// headers have to come within this time.
    pub async fn ask(&self, request: Outgoing, patience: Duration) -> Result<Response<IncomingBody>, Fault> {
        self.ask_over(request, patience, Over::Any).await
    }

    async fn ask_over(
        &self,
        request: Outgoing,
        patience: Duration,
        over: Over,
    ) -> Result<Response<IncomingBody>, Fault> {
        let (parts, body) = request.into_parts();
        let streamed = matches!(body, Payload::Streamed(_));
        let written = Written::new(&parts, body, over == Over::Upgrade, patience);
        if streamed {
            // It may take long, so its limit is on standing still. And it cannot be sent twice.
            let over = if over == Over::Upgrade { over } else { Over::New };
            return Box::pin(self.exchange(&parts.uri, written, over)).await;
        }
        within(patience, self.exchange(&parts.uri, written, over)).await
    }

    async fn exchange(&self, uri: &Uri, request: Written, over: Over) -> Result<Response<IncomingBody>, Fault> {
        let (idle, place) = match over {
            Over::Any => self.pool.take(uri, Duration::MAX),
            Over::Recent => self.pool.take(uri, RECENT),
            Over::New => (None, self.pool.place(uri)),
            Over::Upgrade => (None, None),
        };
        let mut connection = match idle {
            Some(connection) => connection,
            // Apart: nearly every request finds a connection.
            None => Box::pin(self.connect(uri)).await?,
        };
        let (head, first) = connection.ask(request).await.map_err(unanswered)?;
        let mut reply = Response::new(IncomingBody::new(head.framing, first, connection, place.filter(|_| head.stays)));
        *reply.status_mut() = head.status;
        *reply.headers_mut() = head.headers;
        Ok(reply)
    }

    async fn connect(&self, uri: &Uri) -> Result<Box<Connection>, Fault> {
        // An address that is written out is never looked up, so it is judged here.
        if !self.may_go_to(uri.host().unwrap_or_default()) {
            return Err(Fault::unreachable());
        }
        let made = self.connector.clone().call(uri.clone()).await;
        Ok(Box::new(Connection::new(made.map_err(|error| connect_fault(error.as_ref()))?)))
    }

    /// Closes connections that nobody has used for a while. To be called now and then.
    pub fn tidy(&self) {
        self.pool.tidy();
    }

    /// Reads the error text of a reply that is not 2xx, as far as it matters. What it means, the
    /// ability that was asked for says.
    pub async fn refused(&self, provider: &Provider, response: Response<IncomingBody>) -> WholeReply {
        let (head, body) = response.into_parts();
        let idle = provider.settings.idle.min(ERROR_WAIT);
        let reading = ReplyBody::new(body, idle).start(ERROR_BYTES);
        let body = match is_encoded(&head.headers) {
            // The status alone must do.
            true => Bytes::new(),
            false => tokio::time::timeout(ERROR_WAIT, reading).await.unwrap_or_default(),
        };
        WholeReply { status: head.status.as_u16(), headers: head.headers, body }
    }
}

/// The headers have to come within this time.
fn within<T>(
    patience: Duration,
    reply: impl Future<Output = Result<T, Fault>>,
) -> impl Future<Output = Result<T, Fault>> {
    tokio::time::timeout(patience, reply).map(|in_time| in_time.unwrap_or_else(|_| Err(Fault::late())))
}

/// Why there is no reply, once there was a connection.
fn unanswered(why: Unanswered) -> Fault {
    match why {
        Unanswered::Connection => Fault::reset(),
        Unanswered::Upload => Fault::upload_broken(),
        Unanswered::OwnFile => Fault::own_file(),
        Unanswered::UploadLate => Fault::upload_late(),
        Unanswered::Late => Fault::late(),
    }
}

/// Why there is no connection. The error's own text names hosts, so it is not used.
fn connect_fault(error: &(dyn Error + 'static)) -> Fault {
    let mut cause = Some(error);
    while let Some(one) = cause {
        if one.is::<tokio::time::error::Elapsed>() {
            return Fault::connect_timeout();
        }
        cause = one.source();
    }
    Fault::unreachable()
}

fn connector(settings: &ClientSettings, reachable: Reachable, names: Option<NameSource>) -> Connector {
    let tls = HttpsConnectorBuilder::new()
        .with_provider_and_webpki_roots(rustls::crypto::ring::default_provider())
        .expect("ring offers the default TLS versions");
    over_tls(tls, settings, reachable, names)
}

fn over_tls(
    tls: HttpsConnectorBuilder<WantsSchemes>,
    settings: &ClientSettings,
    reachable: Reachable,
    names: Option<NameSource>,
) -> Connector {
    let mut tcp = HttpConnector::new_with_resolver(Resolver::new(reachable, names));
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(Duration::from_secs(60)));
    tcp.set_connect_timeout(Some(settings.connect_timeout));
    let inner = tls.https_or_http().enable_http1().wrap_connector(tcp);
    Connector::Net(Timed { inner, limit: settings.connect_timeout })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cable::Cable;
    use http::Request;
    use hyper_rustls::MaybeHttpsStream;

    #[tokio::test]
    async fn nagle_is_off() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri: Uri = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let stream = connector(&ClientSettings::default(), Reachable::Everything, None).call(uri).await.unwrap();
        let Cable::Net(MaybeHttpsStream::Http(tcp)) = stream else { panic!("not TLS") };
        assert!(tcp.inner().nodelay().unwrap());
    }

    #[tokio::test]
    async fn a_client_for_strangers_addresses_does_not_go_inside() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = Client::public(ClientSettings::default());
        for host in ["127.0.0.1", "localhost", "[::1]", "0x7f000001", "2130706433", "127.1", "169.254.169.254"] {
            let request = Request::get(format!("http://{host}:{port}/")).body(Payload::default()).unwrap();
            let fault = client.ask(request, Duration::from_secs(5)).await.expect_err(host);
            assert!(!fault.sent, "{host}");
        }
        let looked = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
        assert!(looked.is_err(), "somebody knocked");
    }
}
