//! Connections that wait for the next request, by scheme and host. The one used last is taken
//! first, so that those above what is needed grow old and are closed.

use super::connection::Connection;
use http::Uri;
use http::uri::Authority;
use std::collections::{HashMap, VecDeque};
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

    /// A connection to this host that can be used at once, and the place of any connection to it.
    pub fn take(self: &Arc<Pool>, uri: &Uri) -> (Option<Box<Connection>>, Option<PoolSlot>) {
        let Some(place) = self.place(uri) else { return (None, None) };
        let mut hosts = self.lock(place.secure);
        let Some(idle) = hosts.get_mut(place.host.as_str()).filter(|idle| !idle.is_empty()) else {
            return (None, Some(place));
        };
        let oldest = Instant::now().checked_sub(self.longest_idle);
        while let Some(mut last) = idle.pop_back() {
            if oldest.is_some_and(|oldest| last.since < oldest) {
                // The others are older still.
                idle.clear();
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
