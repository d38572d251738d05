//! What the machine allows: file descriptors and memory, as values. Connections, calls and bodies follow them, so that a gateway
//! under attack runs out of places and not out of descriptors.

use crate::settings::Limits;

/// For database, journal, logs, the admin socket, the watcher of files, and the connections of the operator's own port.
const OWN: usize = 128;
/// Connections of the operator's own port.
pub const METRICS_CONNECTIONS: usize = 32;
/// Memory for bodies where nothing is known, and at least.
const BODIES: usize = 256 << 20;
const LEAST_BODIES: usize = 64 << 20;

/// `None`: it is not known, or there is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    pub descriptors: Option<usize>,
    pub memory: Option<usize>,
}

impl Machine {
    /// The limits as far as they fit the machine. Of the descriptors a half is for clients, three eighths are for calls, each with
    /// its connection to a provider, and the rest is for connections that are kept, fetched links, webhooks and copies.
    pub fn fit(&self, limits: &mut Limits) {
        if let Some(descriptors) = self.descriptors {
            let rest = descriptors.saturating_sub(OWN).max(16);
            let (connections, calls) = (rest / 2, rest / 8 * 3);
            if connections < limits.connections || calls < limits.calls {
                tracing::info!(descriptors, connections, calls, "fewer connections and calls than set: ulimit -n");
            }
            limits.connections = limits.connections.min(connections);
            limits.calls = limits.calls.min(calls);
            limits.idle_upstream = limits.idle_upstream.min(rest / 16);
        }
        // An eighth of the memory, and two of the largest bodies in any case.
        let default = self.memory.map_or(BODIES, |memory| (memory / 8).max(LEAST_BODIES));
        let least = limits.body_bytes.saturating_mul(2);
        limits.bodies_bytes = Some(limits.bodies_bytes.unwrap_or(default).max(least));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_fits_below_the_limit_of_descriptors() {
        for descriptors in [256, 1_024, 4_096, 1 << 20] {
            let mut limits = Limits::default();
            Machine { descriptors: Some(descriptors), memory: None }.fit(&mut limits);
            let taken = limits.connections + limits.calls + limits.idle_upstream + OWN;
            assert!(taken <= descriptors, "{descriptors}: {limits:?}");
            assert!(limits.connections <= Limits::default().connections && limits.calls <= Limits::default().calls);
        }
        let mut limits = Limits::default();
        Machine::default().fit(&mut limits);
        assert_eq!((limits.connections, limits.calls), (20_000, 10_000), "nothing is known, nothing is changed");
    }

    #[test]
    fn the_budget_for_bodies_follows_the_memory_and_holds_two_of_the_largest() {
        let budget = |memory, set, body_bytes| {
            let mut limits = Limits { bodies_bytes: set, body_bytes, ..Limits::default() };
            Machine { descriptors: None, memory }.fit(&mut limits);
            limits.bodies_bytes.expect("set") >> 20
        };
        for (memory, set, body, expected) in [
            (None, None, 32, 256),
            (Some(16 << 30), None, 32, 2_048),
            (Some(256 << 20), None, 32, 64),
            (Some(256 << 20), None, 64, 128),
            (Some(16 << 30), Some(512 << 20), 32, 512),
            (Some(16 << 30), Some(1 << 20), 32, 64),
        ] {
            assert_eq!(budget(memory, set, body << 20), expected, "{memory:?} {set:?} {body}");
        }
    }
}
