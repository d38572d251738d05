//! Which entry it is, with another creation of the same words under way: whatever happens between
//! two readings, no task is taken for another's.

use super::*;
use crate::app::App;
use crate::call::task::TaskDesk as _;
use crate::testing::bare_app;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tollgate_media::video::{Api, Offer, Plan, Variant, VideoRequest};
use tollgate_store::testing::price;
use tollgate_store::{
    AccountId, BegunTask, Credit, CreditKind, Hold, KeyId, Leased, Limits, NewAccount, NewKey, NewTask, Pot, SentTo,
    TaskId, TaskNaming, TaskState, TaskStep, Word,
};
use tollgate_upstream::{BaseUrl, Provider, ProviderSettings, Secret};

#[test]
fn only_two_hosts_that_are_known_differ() {
    for (ours, theirs, elsewhere) in [
        (Some("a.example"), Some("b.example"), true),
        (Some("a.example"), Some("a.example"), false),
        (Some("a.example"), None, false),
        (None, Some("b.example"), false),
        (None, None, false),
    ] {
        assert_eq!(is_elsewhere(ours, theirs), elsewhere, "{ours:?} {theirs:?}");
    }
}

#[test]
fn our_very_prompt_stands_out_and_nothing_else_does() {
    use Likeness::{Otherwise, Outside, Unclear, Whole};
    let one = |likeness| Alike { id: "a".to_owned(), likeness, entry: serde_json::Value::Null };
    for (likeness, doubtful, stands) in [
        (Outside, vec![], true),
        (Whole, vec![], true),
        (Whole, vec![Otherwise, Otherwise], true),
        (Whole, vec![Otherwise, Unclear], false),
        (Outside, vec![Otherwise], false),
        (Outside, vec![Unclear], false),
    ] {
        let others: Vec<Alike> = doubtful.iter().map(|likeness| one(*likeness)).collect();
        assert_eq!(stands_out(&one(likeness), &others), stands, "{likeness:?} beside {doubtful:?}");
    }
}

const PROMPT: &str = "A gate opens.";
const NAME: &str = "video_of_the_other";
const LEASE: i64 = 60_000;

/// A gateway with a customer, and the account at a provider that all tasks go to.
struct Desk {
    app: Arc<App>,
    account: AccountId,
    key: KeyId,
    provider: Arc<Provider>,
}

impl Desk {
    async fn new() -> Desk {
        let app = bare_app().await;
        let new = NewAccount { name: "test".to_owned(), ..NewAccount::default() };
        let account = app.store.create_account(new).await.expect("an account").id;
        let (reason, actor) = ("test".to_owned(), "test".to_owned());
        let amount = "1".parse().expect("an amount");
        let (kind, pot, id) = (CreditKind::TopUp, Pot::Paid, "first".to_owned());
        let credit = Credit { id, account, kind, pot, amount, expires_at: None, reason, actor };
        app.store.credit(credit).await.expect("credited");
        let (name, limits) = ("test".to_owned(), Limits::default());
        let new =
            NewKey { account, name, expires_at: None, models: None, cidrs: None, limits, scope: Default::default() };
        let key = app.store.create_key(new, "sk-test").await.expect("a key").id;
        let kind = tollgate_upstream::kind("openai").expect("a kind");
        let base = BaseUrl::parse("https://api.example/v1").expect("an address");
        let provider =
            Provider::new("openai", kind, base, Some(Secret::new("sk-upstream")), ProviderSettings::default());
        Desk { app, account, key, provider: Arc::new(provider.expect("a provider")) }
    }

    /// A task of the same words, on its way to the provider.
    async fn sent(&self) -> BegunTask {
        let app = &self.app;
        let call = app.new_call_id();
        let hold = Hold {
            call,
            account: self.account,
            key: self.key,
            amount: "0.1".parse().expect("an amount"),
            least: "0.1".parse().expect("an amount"),
            price: price(1),
            model: "sora-2".to_owned(),
            endpoint: "/v1/videos",
            paid_only: false,
            topped_up: true,
            expires_at: app.world.steady_ms() + 86_400_000,
            at: app.world.now_ms(),
            idem: None,
        };
        let plan = StoredPlan::of(&plan(), TaskId::of(call), &app.secrets).text();
        let begun =
            app.store.begin_task(hold, NewTask { plan, webhook_url: None, lease_ms: LEASE }).await.expect("begun");
        let to = SentTo {
            provider: self.provider.name.clone(),
            upstream_model: "sora-2".to_owned(),
            host: self.provider.base_url.place(),
            key: self.provider.key_print().to_owned(),
        };
        assert!(app.store.task_sending(begun, to, LEASE).await.expect("written"));
        begun
    }

    /// One whose answer was lost, in the hands of who looks for it.
    async fn lost(&self) -> Leased {
        let BegunTask { id, fence } = self.sent().await;
        let step = TaskStep::new(id, fence, TaskState::Unknown, Word::Unclear, 0);
        assert!(self.app.store.put_back_task(step).await.expect("written"));
        self.app.store.take_task(id, LEASE).await.expect("taken").expect("nobody has it")
    }

    /// Which entry of a list with one video of these words is the lost task.
    async fn which(&self, lost: &Leased, ours: &impl OwnTasks) -> Which {
        let (till, desk, provider) = (&self.app.till, &self.app.video, self.provider.clone());
        let plan = desk.read(&lost.task.plan).expect("a plan");
        assert_eq!(plan.api, Api::Sora);
        let habits = desk.habits(&plan, Some(&provider)).expect("it makes videos");
        let video = provider.kind.video.expect("it makes videos");
        let watched = Watched { till, desk, leased: lost, plan, provider, habits, sure: true };
        let external_id = lost.task.id.to_string();
        let prompt = watched.plan.stored.prompt(&self.app.secrets, &external_id);
        let now = self.app.world.now_ms();
        let sought = watched.plan.stored.sought(&lost.task, &external_id, prompt.as_ref(), now).expect("known");
        let entry = entry(now / 1_000);
        let likeness = video.likeness(&sought, &entry);
        assert_eq!(likeness, Likeness::Whole, "by its words it is the one");
        let alike = vec![Alike { id: NAME.to_owned(), likeness, entry }];
        which(&watched, ours, Entries { alike, whole: true }).await.expect("read")
    }
}

fn plan() -> Plan {
    let request = json!({ "model": "sora-2", "prompt": PROMPT }).to_string();
    let request = VideoRequest::from_json(request.as_bytes()).expect("a request");
    tollgate_media::video::plan(&request, &Offer::of(Variant::named("sora").expect("a variant"))).expect("a plan")
}

fn entry(created_at: i64) -> Value {
    json!({
        "id": NAME, "object": "video", "model": "sora-2", "status": "in_progress", "created_at": created_at, "seconds": "4",
        "size": "720x1280", "remixed_from_video_id": null, "prompt": PROMPT,
    })
}

/// The store, where the other task gets its name just before one of the readings.
struct Between<'a> {
    store: &'a Store,
    other: TaskId,
    /// Which reading that is, counted from 0.
    named_before: usize,
    readings: AtomicUsize,
}

impl Between<'_> {
    async fn reading(&self) {
        if self.readings.fetch_add(1, Ordering::SeqCst) == self.named_before {
            let named = self.store.task_accepted(self.other, NAME.to_owned(), LEASE).await.expect("written");
            assert_eq!(named, TaskNaming::Done);
        }
    }
}

impl OwnTasks for Between<'_> {
    async fn nameless(&self, begun: (i64, i64)) -> Result<Vec<Task>, StoreError> {
        self.reading().await;
        self.store.nameless(begun).await
    }

    async fn named(&self, ids: &[String]) -> Result<Vec<String>, StoreError> {
        self.reading().await;
        self.store.named(ids).await
    }
}

#[tokio::test]
async fn the_only_task_of_these_words_is_the_one() {
    let desk = Desk::new().await;
    let lost = desk.lost().await;
    assert_eq!(desk.which(&lost, &desk.app.store).await, Which::This(NAME.to_owned()));
}

/// The video in the list is the other's, whose provider answers before, between or after our
/// readings. Read in another order, it would once be seen neither among the nameless nor by its
/// name, and one customer would get the other's video.
#[tokio::test]
async fn whenever_the_other_gets_its_name_it_is_not_mistaken() {
    for (named_before, expected) in [(0, Which::None), (1, Which::None), (2, Which::Unsure)] {
        let desk = Desk::new().await;
        let lost = desk.lost().await;
        let other = desk.sent().await.id;
        let ours = Between { store: &desk.app.store, other, named_before, readings: AtomicUsize::new(0) };
        assert_eq!(desk.which(&lost, &ours).await, expected, "named before reading {named_before}");
        assert_eq!(ours.readings.load(Ordering::SeqCst), 2, "each is read once");
    }
}
