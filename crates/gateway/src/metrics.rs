//! What an operator watches. Counters of calls are here with their label handles cached by the
//! family; the page, with the gauges of the ledger, is written when somebody asks
//! (`endpoints/metrics.rs`).

use crate::live_meter::LiveMeter;
use crate::margins::MarginMeter;
use crate::people_meter::PeopleMeter;
use crate::world::Millis;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::sync::atomic::{AtomicI64, Ordering};
use tollgate_store::{Ending, TaskState};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct EndedLabels {
    endpoint: &'static str,
    ending: &'static str,
    reason: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct FaultLabels {
    provider: String,
    code: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PairLabels {
    provider: String,
    model: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SwitchLabels {
    kind: &'static str,
    name: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PollLabels {
    provider: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct TaskLabels {
    state: &'static str,
    how: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RefusedLabels {
    code: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct WebhookLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ClosedLabels {
    reason: &'static str,
}

/// What is counted of connections, for those who open and close them.
#[derive(Clone, Default)]
pub struct ConnectionMeter {
    pub open: Gauge,
    closed: Family<ClosedLabels, Counter>,
}

impl ConnectionMeter {
    /// One that its client had not closed.
    pub fn closed(&self, reason: &'static str) {
        self.closed.get_or_create(&ClosedLabels { reason }).inc();
    }

    fn register(&self, registry: &mut Registry) {
        registry.register("connections", "Connections of clients", self.open.clone());
        let help = "Connections that were closed or refused by the gateway, by reason";
        registry.register("connections_closed", help, self.closed.clone());
    }

    /// How many were closed for this reason.
    pub fn count(&self, reason: &'static str) -> u64 {
        self.closed.get_or_create(&ClosedLabels { reason }).get()
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct HandshakeLabels {
    outcome: &'static str,
}

/// What is counted of TLS on the listening port, for those who open connections and read its files.
#[derive(Clone, Default)]
pub struct TlsMeter {
    handshakes: Family<HandshakeLabels, Counter>,
    /// Without TLS there is no value, so that no alarm goes off.
    ends: Family<[(&'static str, &'static str); 0], Gauge>,
    pub stale: Gauge,
    pub loads: Counter,
}

impl TlsMeter {
    pub fn handshake(&self, outcome: &'static str) {
        self.handshakes.get_or_create(&HandshakeLabels { outcome }).inc();
    }

    /// How many came to this.
    pub fn handshakes(&self, outcome: &'static str) -> u64 {
        self.handshakes.get_or_create(&HandshakeLabels { outcome }).get()
    }

    /// A certificate is served that ends then, in seconds since 1970.
    pub fn serves_until(&self, ends: i64) {
        self.ends.get_or_create(&[]).set(ends);
    }

    pub fn ends(&self) -> i64 {
        self.ends.get_or_create(&[]).get()
    }

    fn register(&self, registry: &mut Registry) {
        let help = "TLS handshakes of clients, by outcome";
        registry.register("tls_handshakes", help, self.handshakes.clone());
        let help = "When the certificate of the listening port ends, in seconds since 1970";
        registry.register("tls_certificate_end_seconds", help, self.ends.clone());
        let help = "1 while a broken pair of certificate and key keeps an old one serving";
        registry.register("tls_stale", help, self.stale.clone());
        registry.register("tls_loads", "Pairs of certificate and key taken over since the start", self.loads.clone());
    }
}

/// What is counted of alerts.
#[derive(Clone, Default)]
pub struct AlertMeter {
    pub firing: Gauge,
    deliveries: Family<WebhookLabels, Counter>,
}

impl AlertMeter {
    pub fn delivery(&self, outcome: &'static str) {
        self.deliveries.get_or_create(&WebhookLabels { outcome }).inc();
    }

    /// How many came to this.
    pub fn deliveries(&self, outcome: &'static str) -> u64 {
        self.deliveries.get_or_create(&WebhookLabels { outcome }).get()
    }

    fn register(&self, registry: &mut Registry) {
        registry.register("alerts_firing", "Subjects for which a rule of alerts fires", self.firing.clone());
        let help = "Tries to tell of alerts and low balances, by outcome";
        registry.register("alert_deliveries", help, self.deliveries.clone());
    }
}

pub struct Metrics {
    registry: Registry,
    pub connections: ConnectionMeter,
    pub tls: TlsMeter,
    pub margins: MarginMeter,
    pub alerts: AlertMeter,
    pub people: PeopleMeter,
    pub live: LiveMeter,
    ended: Family<EndedLabels, Counter>,
    answered: Counter,
    faults: Family<FaultLabels, Counter>,
    above_quote: Family<PairLabels, Counter>,
    refused: Family<RefusedLabels, Counter>,
    polls: Family<PollLabels, Counter>,
    tasks_ended: Family<TaskLabels, Counter>,
    late_tasks: Counter,
    stale_tasks: Counter,
    late_success: Counter,
    other_length: Family<PairLabels, Counter>,
    other_tier: Family<PairLabels, Counter>,
    paused: Family<PairLabels, Gauge>,
    switched: Family<SwitchLabels, Gauge>,
    /// Accounts in a group that the catalog does not have.
    pub groupless: Gauge,
    pauses: Family<PairLabels, Counter>,
    webhooks: Family<WebhookLabels, Counter>,
    payment_events: Family<WebhookLabels, Counter>,
    probes: Family<PollLabels, Counter>,
    probe_cost: Counter,
    seconds: Histogram,
    first_byte: Histogram,
    pub catalog_stale: Gauge,
    pub catalog_loads: Counter,
    /// Client secrets that were made.
    pub client_secrets: Counter,
    audit_failures: Counter,
    /// When an audit last came to its end, by the clock that does not jump.
    audited_at: AtomicI64,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let mut registry = Registry::with_prefix("tollgate");
        let buckets = || [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0].into_iter();
        let metrics = Metrics {
            connections: ConnectionMeter::default(),
            tls: TlsMeter::default(),
            margins: MarginMeter::default(),
            alerts: AlertMeter::default(),
            people: PeopleMeter::default(),
            live: LiveMeter::default(),
            ended: Family::default(),
            answered: Counter::default(),
            faults: Family::default(),
            above_quote: Family::default(),
            refused: Family::default(),
            polls: Family::default(),
            tasks_ended: Family::default(),
            late_tasks: Counter::default(),
            stale_tasks: Counter::default(),
            late_success: Counter::default(),
            other_length: Family::default(),
            other_tier: Family::default(),
            paused: Family::default(),
            switched: Family::default(),
            groupless: Gauge::default(),
            pauses: Family::default(),
            webhooks: Family::default(),
            payment_events: Family::default(),
            probes: Family::default(),
            probe_cost: Counter::default(),
            seconds: Histogram::new(buckets()),
            first_byte: Histogram::new(buckets()),
            catalog_stale: Gauge::default(),
            catalog_loads: Counter::default(),
            client_secrets: Counter::default(),
            audit_failures: Counter::default(),
            audited_at: AtomicI64::new(0),
            registry: Registry::default(),
        };
        registry.register("calls_ended", "Calls by ending and reason", metrics.ended.clone());
        registry.register("calls_answered", "Calls answered in full", metrics.answered.clone());
        let help =
            "Calls whose provider went beyond their limit of tokens or what they may cost; the operator bears it";
        registry.register("calls_above_quote", help, metrics.above_quote.clone());
        registry.register("provider_faults", "Failed attempts by provider and code", metrics.faults.clone());
        registry.register("refusals", "Requests refused by code", metrics.refused.clone());
        metrics.register_tasks(&mut registry);
        registry.register(
            "route_paused",
            "1 while a provider is not asked for a model because it reports no usage",
            metrics.paused.clone(),
        );
        registry.register(
            "paused",
            "1 while a model, a cell of social data or a provider is paused",
            metrics.switched.clone(),
        );
        registry.register(
            "accounts_in_unknown_groups",
            "Accounts in a price group that the catalog does not have",
            metrics.groupless.clone(),
        );
        registry.register("route_pauses", "Pauses because usage was not reported", metrics.pauses.clone());
        registry.register("payment_events", "News of payment providers, by outcome", metrics.payment_events.clone());
        registry.register("webhooks", "Tries to tell customers of ended tasks, by outcome", metrics.webhooks.clone());
        registry.register("probes", "Calls along routes without traffic, by outcome", metrics.probes.clone());
        let help = "What probes may have cost the operator at most, in nano-USD";
        registry.register("probe_cost_nano_usd", help, metrics.probe_cost.clone());
        registry.register(
            "audit_failures",
            "Audits of the ledger that could not be made",
            metrics.audit_failures.clone(),
        );
        registry.register("call_seconds", "Time from admission to the end of a call", metrics.seconds.clone());
        registry.register(
            "first_byte_seconds",
            "Time from admission to the provider's first byte",
            metrics.first_byte.clone(),
        );
        registry.register(
            "catalog_stale",
            "1 while a broken configuration keeps an old one serving",
            metrics.catalog_stale.clone(),
        );
        registry.register("catalog_loads", "Configurations taken over since the start", metrics.catalog_loads.clone());
        metrics.connections.register(&mut registry);
        let help = "Client secrets for realtime sessions that were made";
        registry.register("client_secrets", help, metrics.client_secrets.clone());
        metrics.tls.register(&mut registry);
        metrics.margins.register(&mut registry);
        metrics.alerts.register(&mut registry);
        metrics.people.register(&mut registry);
        metrics.live.register(&mut registry);
        Metrics { registry, ..metrics }
    }
}

impl Metrics {
    fn register_tasks(&self, registry: &mut Registry) {
        registry.register("task_polls", "Questions about video tasks by provider and outcome", self.polls.clone());
        registry.register("tasks_ended", "Video tasks by how they ended", self.tasks_ended.clone());
        registry.register("tasks_late", "Tasks a provider took after they had ended here", self.late_tasks.clone());
        registry.register("tasks_stale", "Changes of a task that came too late to count", self.stale_tasks.clone());
        registry.register(
            "late_success",
            "Videos a provider finished after their tasks had ended without a charge",
            self.late_success.clone(),
        );
        registry.register(
            "tasks_other_tier",
            "Videos a provider made in another resolution than was asked for and charged",
            self.other_tier.clone(),
        );
        registry.register(
            "recordings_other_length",
            "Recordings whose length a provider has otherwise than it was measured and charged",
            self.other_length.clone(),
        );
    }

    pub fn ended(&self, endpoint: &'static str, ending: Ending, reason: &str) {
        if ending == Ending::Answered && reason.is_empty() {
            self.answered.inc();
            return;
        }
        let labels = EndedLabels { endpoint, ending: ending.name(), reason: reason.to_owned() };
        self.ended.get_or_create(&labels).inc();
    }

    pub fn took(&self, call: Millis, first_byte: Option<Millis>) {
        self.seconds.observe(seconds(call));
        if let Some(first_byte) = first_byte {
            self.first_byte.observe(seconds(first_byte));
        }
    }

    pub fn fault(&self, provider: &str, code: &'static str) {
        self.faults.get_or_create(&FaultLabels { provider: provider.to_owned(), code }).inc();
    }

    /// A provider went beyond what a call may cost.
    pub fn above_quote(&self, provider: &str, model: &str) {
        self.above_quote.get_or_create(&PairLabels { provider: provider.to_owned(), model: model.to_owned() }).inc();
    }

    pub fn paused(&self, provider: &str, model: &str, paused: bool) {
        let labels = PairLabels { provider: provider.to_owned(), model: model.to_owned() };
        self.paused.get_or_create(&labels).set(i64::from(paused));
        if paused {
            self.pauses.get_or_create(&labels).inc();
        }
    }

    /// Something was paused or resumed, here or by somebody else.
    pub fn switched(&self, kind: &'static str, name: &str, paused: bool) {
        let labels = SwitchLabels { kind, name: name.to_owned() };
        self.switched.get_or_create(&labels).set(i64::from(paused));
    }

    /// An audit came to its end, or everything has just begun.
    pub fn audited(&self, now: Millis) {
        self.audited_at.store(now, Ordering::Relaxed);
    }

    pub fn audit_failed(&self) {
        self.audit_failures.inc();
    }

    pub fn payment_event(&self, outcome: &'static str) {
        self.payment_events.get_or_create(&WebhookLabels { outcome }).inc();
    }

    pub fn webhook(&self, outcome: &'static str) {
        self.webhooks.get_or_create(&WebhookLabels { outcome }).inc();
    }

    pub fn probed(&self, provider: &str, outcome: &'static str, most_nano: i64) {
        self.probes.get_or_create(&PollLabels { provider: provider.to_owned(), outcome }).inc();
        self.probe_cost.inc_by(u64::try_from(most_nano).unwrap_or(0));
    }

    pub fn polled(&self, provider: &str, outcome: &'static str) {
        self.polls.get_or_create(&PollLabels { provider: provider.to_owned(), outcome }).inc();
    }

    pub fn task_ended(&self, state: TaskState, how: &'static str) {
        self.tasks_ended.get_or_create(&TaskLabels { state: state.name(), how }).inc();
    }

    pub fn late_task(&self) {
        self.late_tasks.inc();
    }

    pub fn stale_task(&self) {
        self.stale_tasks.inc();
    }

    pub fn other_tier(&self, provider: &str, model: &str) {
        self.other_tier.get_or_create(&PairLabels { provider: provider.to_owned(), model: model.to_owned() }).inc();
    }

    /// A provider has another length of a recording than we.
    pub fn other_length(&self, provider: &str, model: &str) {
        self.other_length.get_or_create(&PairLabels { provider: provider.to_owned(), model: model.to_owned() }).inc();
    }

    pub fn late_success(&self) {
        self.late_success.inc();
    }

    pub fn refused(&self, code: &'static str) {
        self.refused.get_or_create(&RefusedLabels { code }).inc();
    }
}

#[expect(clippy::cast_precision_loss, reason = "a duration in a histogram, no money")]
fn seconds(ms: Millis) -> f64 {
    ms.max(0) as f64 / 1_000.0
}

impl Metrics {
    /// Seconds since the ledger was last audited.
    pub fn audit_age(&self, steady_ms: Millis) -> Millis {
        steady_ms.saturating_sub(self.audited_at.load(Ordering::Relaxed)) / 1_000
    }

    /// All that is counted here, as text.
    pub fn write(&self, page: &mut String) {
        if text::encode(page, &self.registry).is_err() {
            tracing::error!("metrics could not be written");
        }
    }
}
