//! Limits as far as they fit the machine, so that a gateway under attack runs out of places and not
//! out of descriptors.

use super::ServerLimits;
use crate::machine::Machine;

/// For database, journal, logs, the admin socket, the watcher of files, and the connections of the
/// operator's own port.
const OWN: usize = 128;
/// Connections of the operator's own port.
pub const METRICS_CONNECTIONS: usize = 32;
/// Memory for bodies where nothing is known, and at least.
const BODIES: usize = 256 << 20;
const LEAST_BODIES: usize = 64 << 20;

impl ServerLimits {
    /// The limits as far as they fit the machine. Of the descriptors a half is for clients, three
    /// eighths are for calls, each with its connection to a provider, and the rest is for
    /// idle connections, fetched links, webhooks and copies.
    pub fn fit(&mut self, machine: &Machine) {
        if let Some(descriptors) = machine.descriptors {
            let rest = descriptors.saturating_sub(OWN).max(16);
            let (connections, calls) = (rest / 2, rest / 8 * 3);
            if connections < self.connections || calls < self.calls {
                tracing::info!(descriptors, connections, calls, "fewer connections and calls than set: ulimit -n");
            }
            self.connections = self.connections.min(connections);
            self.calls = self.calls.min(calls);
            self.idle_upstream = self.idle_upstream.min(rest / 16);
        }
        // An eighth of the memory, and two of the largest bodies in any case.
        let default = machine.memory.map_or(BODIES, |memory| (memory / 8).max(LEAST_BODIES));
        let least = self.body_bytes.saturating_mul(2);
        self.bodies_bytes = Some(self.bodies_bytes.unwrap_or(default).max(least));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_fits_below_the_limit_of_descriptors() {
        for descriptors in [256, 1_024, 4_096, 1 << 20] {
            let mut limits = ServerLimits::default();
            limits.fit(&Machine { descriptors: Some(descriptors), memory: None });
            let taken = limits.connections + limits.calls + limits.idle_upstream + OWN;
            assert!(taken <= descriptors, "{descriptors}: {limits:?}");
            assert!(
                limits.connections <= ServerLimits::default().connections
                    && limits.calls <= ServerLimits::default().calls
            );
        }
        let mut limits = ServerLimits::default();
        limits.fit(&Machine::default());
        assert_eq!((limits.connections, limits.calls), (20_000, 10_000), "nothing is known, nothing is changed");
    }

    #[test]
    fn the_budget_for_bodies_follows_the_memory_and_holds_two_of_the_largest() {
        let budget = |memory, set, body_bytes| {
            let mut limits = ServerLimits { bodies_bytes: set, body_bytes, ..ServerLimits::default() };
            limits.fit(&Machine { descriptors: None, memory });
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
