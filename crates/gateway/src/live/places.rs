//! How many may watch at once: customers in all, of one account, by one session or key, and from
//! one address; operators apart, so that no customer takes their places.

use super::lock;
use crate::live_meter::LiveMeter;
use crate::settings::LiveSettings;
use prometheus_client::metrics::gauge::Gauge;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex};
use tollgate_store::AccountId;

/// Where somebody watches from: an address, or all of the network that a host with the newer kind
/// can choose its addresses from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LiveAddress(IpAddr);

impl LiveAddress {
    pub fn of(address: Option<IpAddr>) -> LiveAddress {
        let address = address.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
        LiveAddress(match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(six) => {
                let [a, b, c, d, ..] = six.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
        })
    }
}

/// Somebody who wants to watch.
#[derive(Clone, Copy, Debug)]
pub struct Watcher {
    /// The account; nothing: the house.
    pub account: Option<AccountId>,
    /// What they proved themselves with, hashed.
    pub proof: [u8; 32],
    pub address: LiveAddress,
}

#[derive(Default)]
struct Taken {
    customers: usize,
    operators: usize,
    accounts: HashMap<AccountId, usize>,
    proofs: HashMap<[u8; 32], usize>,
    addresses: HashMap<LiveAddress, usize>,
}

pub struct LivePlaces {
    most: LiveSettings,
    taken: Mutex<Taken>,
    customers: Gauge,
    operators: Gauge,
}

/// A place that somebody watches from; it is free again when this is dropped.
pub struct LiveSlot {
    all: Arc<LivePlaces>,
    watcher: Watcher,
}

impl LivePlaces {
    pub fn new(settings: &LiveSettings, meter: &LiveMeter) -> LivePlaces {
        let (customers, operators) = (meter.streams("account"), meter.streams("house"));
        LivePlaces { most: settings.clone(), taken: Mutex::default(), customers, operators }
    }

    /// A place, or of whom there are too many.
    pub fn take(self: &Arc<Self>, watcher: Watcher) -> Result<LiveSlot, &'static str> {
        let (most, mut taken) = (&self.most, lock(&self.taken));
        if count(&taken.proofs, &watcher.proof) >= most.streams_per_session {
            return Err("of this session or key");
        }
        if count(&taken.addresses, &watcher.address) >= most.streams_per_address {
            return Err("from this address");
        }
        match watcher.account {
            Some(account) => {
                if count(&taken.accounts, &account) >= most.streams_per_account {
                    return Err("of this account");
                }
                if taken.customers >= most.streams {
                    return Err("of all accounts");
                }
                taken.customers += 1;
                *taken.accounts.entry(account).or_default() += 1;
            }
            None if taken.operators >= most.operator_streams => return Err("of operators"),
            None => taken.operators += 1,
        }
        *taken.proofs.entry(watcher.proof).or_default() += 1;
        *taken.addresses.entry(watcher.address).or_default() += 1;
        self.gauge(watcher).inc();
        Ok(LiveSlot { all: self.clone(), watcher })
    }

    fn gauge(&self, watcher: Watcher) -> &Gauge {
        if watcher.account.is_some() { &self.customers } else { &self.operators }
    }
}

impl Drop for LiveSlot {
    fn drop(&mut self) {
        let Watcher { account, proof, address } = self.watcher;
        let mut taken = lock(&self.all.taken);
        match account {
            Some(account) => {
                taken.customers -= 1;
                give_back(&mut taken.accounts, account);
            }
            None => taken.operators -= 1,
        }
        give_back(&mut taken.proofs, proof);
        give_back(&mut taken.addresses, address);
        self.all.gauge(self.watcher).dec();
    }
}

fn count<K: Hash + Eq>(map: &HashMap<K, usize>, key: &K) -> usize {
    map.get(key).copied().unwrap_or(0)
}

fn give_back<K: Hash + Eq>(map: &mut HashMap<K, usize>, key: K) {
    if let Some(taken) = map.get_mut(&key) {
        *taken -= 1;
        if *taken == 0 {
            map.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watcher(account: Option<u8>, proof: u8, address: &str) -> Watcher {
        let address = LiveAddress::of(address.parse().ok());
        Watcher { account: account.map(|n| AccountId([n; 16])), proof: [proof; 32], address }
    }

    #[test]
    fn there_is_a_bound_for_each_and_for_all() {
        let settings = LiveSettings {
            streams: 5,
            streams_per_account: 3,
            streams_per_session: 2,
            streams_per_address: 4,
            operator_streams: 1,
            ..LiveSettings::default()
        };
        let places = Arc::new(LivePlaces::new(&settings, &LiveMeter::default()));
        let take = |account, proof, address| places.take(watcher(account, proof, address)).map_err(str::to_owned);
        let held = [take(Some(1), 1, "10.0.0.1"), take(Some(1), 1, "10.0.0.1")];
        assert!(held.iter().all(Result::is_ok));
        assert_eq!(take(Some(1), 1, "10.0.0.2").err().as_deref(), Some("of this session or key"));
        let third = take(Some(1), 2, "10.0.0.1");
        assert_eq!(take(Some(1), 3, "10.0.0.2").err().as_deref(), Some("of this account"));
        let fourth = take(Some(2), 3, "10.0.0.1");
        assert_eq!(take(Some(2), 4, "10.0.0.1").err().as_deref(), Some("from this address"));
        let fifth = take(Some(2), 4, "10.0.0.2");
        assert_eq!(take(Some(3), 5, "10.0.0.3").err().as_deref(), Some("of all accounts"));
        let operator = take(None, 6, "10.0.0.4");
        assert!(third.is_ok() && fourth.is_ok() && fifth.is_ok() && operator.is_ok());
        assert_eq!(take(None, 7, "10.0.0.5").err().as_deref(), Some("of operators"));
        drop((held, third, fourth, fifth, operator));
        let taken = lock(&places.taken);
        assert!(taken.accounts.is_empty() && taken.proofs.is_empty() && taken.addresses.is_empty());
        assert_eq!((taken.customers, taken.operators, places.customers.get(), places.operators.get()), (0, 0, 0, 0));
    }

    #[test]
    fn a_host_cannot_choose_other_addresses() {
        let of = |text: &str| LiveAddress::of(text.parse().ok());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
