//! What an operator watches of those who watch: how many streams of events are open, and what they
//! did not get.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StreamLabels {
    of: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResetLabels {
    reason: &'static str,
}

/// Clones count together.
#[derive(Clone, Default)]
pub struct LiveMeter {
    streams: Family<StreamLabels, Gauge>,
    resets: Family<ResetLabels, Counter>,
    /// Events that a reader was too slow for.
    pub dropped: Counter,
    /// Looks at the store that failed.
    pub failed: Counter,
}

impl LiveMeter {
    /// Streams of an `account`, or of the `house`.
    pub fn streams(&self, of: &'static str) -> Gauge {
        self.streams.get_or_create(&StreamLabels { of }).clone()
    }

    /// A reader was told to read everything again.
    pub fn reset(&self, reason: &'static str) {
        self.resets.get_or_create(&ResetLabels { reason }).inc();
    }

    pub fn register(&self, registry: &mut Registry) {
        registry.register("live_streams", "Streams of live events that are open", self.streams.clone());
        let help = "Readers of live events that were told to read again, by reason";
        registry.register("live_resets", help, self.resets.clone());
        let help = "Live events that a reader was too slow for";
        registry.register("live_events_dropped", help, self.dropped.clone());
        let help = "Looks at the database for live events that failed";
        registry.register("live_looks_failed", help, self.failed.clone());
    }
}
