//! Connections that wait for the next request, by scheme and host. The one used last is taken
//! first, so that those above what is needed grow old and are closed.

use super::connection::Connection;
use foldhash::HashMap;
use http::Uri;
use http::uri::Authority;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

pub(crate) struct Pool {
    /// Without TLS and with it.
    hosts: [Mutex<HashMap<Box<str>, VecDeque<Idle>>>; 2],
    most_idle: usize,
    longest_idle: Duration,
}

struct Idle {
    connection: Box<Connection>,
    since: Instant,
}

/// Where a connection goes when it is free again.
pub(crate) struct PoolSlot {
    pool: Arc<Pool>,
    secure: bool,
    host: Authority,
}

impl Pool {
    pub fn new(most_idle: usize, longest_idle: Duration) -> Pool {
        Pool { hosts: Default::default(), most_idle, longest_idle }
    }

    /// A connection to this host that can be used at once and was used within this time, and the
    /// place of any connection to it.
    pub fn take(self: &Arc<Pool>, uri: &Uri, within: Duration) -> (Option<Box<Connection>>, Option<PoolSlot>) {
        let Some(place) = self.place(uri) else { return (None, None) };
        let mut hosts = self.lock(place.secure);
        let Some(idle) = hosts.get_mut(place.host.as_str()).filter(|idle| !idle.is_empty()) else {
            return (None, Some(place));
        };
        let now = Instant::now();
        while let Some(mut last) = idle.pop_back() {
            let age = now.saturating_duration_since(last.since);
            if age > self.longest_idle {
                // The others are older still.
                idle.clear();
            } else if age > within {
                idle.push_back(last);
                break;
            } else if last.connection.is_quiet() {
                return (Some(last.connection), Some(place));
            }
        }
        (None, Some(place))
    }

    /// Where a connection to this host goes when it is free.
    pub fn place(self: &Arc<Pool>, uri: &Uri) -> Option<PoolSlot> {
        let secure = uri.scheme_str() == Some("https");
        uri.authority().map(|host| PoolSlot { pool: self.clone(), secure, host: host.clone() })
    }

    /// Closes what nobody has used for too long, and forgets hosts without a connection.
    pub fn tidy(&self) {
        let Some(oldest) = Instant::now().checked_sub(self.longest_idle) else { return };
        for secure in [false, true] {
            self.lock(secure).retain(|_, idle| {
                idle.retain_mut(|one| one.since >= oldest && one.connection.is_quiet());
                !idle.is_empty()
            });
        }
    }

    fn lock(&self, secure: bool) -> MutexGuard<'_, HashMap<Box<str>, VecDeque<Idle>>> {
        self.hosts[usize::from(secure)].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

impl PoolSlot {
    pub fn put_back(self, connection: Box<Connection>) {
        if self.pool.most_idle == 0 {
            return;
        }
        let free = Idle { connection, since: Instant::now() };
        let mut hosts = self.pool.lock(self.secure);
        match hosts.get_mut(self.host.as_str()) {
            Some(idle) if idle.len() >= self.pool.most_idle => {}
            Some(idle) => idle.push_back(free),
            None => {
                hosts.insert(self.host.as_str().into(), VecDeque::from([free]));
            }
        }
    }
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use super::*;
    use crate::cable::Cable;
    use hyper_util::rt::TokioIo;
    use tokio::time::advance;

    const RECENT: Duration = Duration::from_secs(1);

    fn put(pool: &Arc<Pool>, uri: &Uri) -> tokio::io::DuplexStream {
        let (ours, theirs) = tokio::io::duplex(64);
        pool.place(uri).expect("a host").put_back(Box::new(Connection::new(Cable::Memory(TokioIo::new(ours)))));
        theirs
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_recent_for_a_moment_and_of_use_to_others_for_longer() {
        let pool = Arc::new(Pool::new(8, Duration::from_secs(60)));
        let uri: Uri = "http://provider.example/v1".parse().unwrap();
        let _theirs = put(&pool, &uri);
        advance(RECENT + Duration::from_millis(1)).await;
        assert!(pool.take(&uri, RECENT).0.is_none(), "too old for what must not be lost");
        assert!(pool.take(&uri, Duration::MAX).0.is_some(), "and still there for the rest");

        let _theirs = put(&pool, &uri);
        let newer = put(&pool, &uri);
        advance(RECENT).await;
        drop(newer);
        assert!(pool.take(&uri, RECENT).0.is_some(), "the one that is not closed");
        assert!(pool.take(&uri, Duration::MAX).0.is_none());
    }
}
