//! A simulator, a client and one provider, joined.

use serde_json::{Value, json};
use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tollgate_media::video::{Api, Offer, Plan, Variant, VideoRequest, plan};
use tollgate_sim::{Received, Sim, SimSettings};
use tollgate_upstream::video::{
    self, Asking, FileLink, Handle, Job, Reach, Remembers, SendTurn, Sought, VideoMaker, VideoReport, VideoSearch,
    VideoStanding,
};
use tollgate_upstream::{BaseUrl, Client, ClientSettings, Fault, Provider, ProviderSettings, Secret, kind};

use super::makers::Maker;

/// Whoever still has it.
#[derive(Debug)]
pub struct Prompt(pub String);

impl Prompt {
    pub fn of(plan: &Plan) -> Option<Prompt> {
        plan.body.get("prompt").and_then(|prompt| Some(Prompt(prompt.as_str()?.trim().to_owned())))
    }
}

impl Remembers for Prompt {
    fn is_ours(&self, prompt: &str) -> Option<bool> {
        Some(self.0 == prompt)
    }
}

pub struct House {
    pub sim: Sim,
    pub maker: Maker,
    pub client: Client,
    pub provider: Provider,
    pub now: i64,
}

pub const TASK: &str = "task_0001";

impl House {
    pub async fn of(maker: Maker) -> House {
        House::with_key(maker, "good-key").await
    }

    pub async fn with_key(maker: Maker, key: &str) -> House {
        let sim = Sim::start(SimSettings::default()).await.expect("a free port");
        let base = BaseUrl::parse(&sim.video_url(maker.kind)).expect("a base");
        let settings = ProviderSettings { first_byte: Duration::from_secs(20), ..ProviderSettings::default() };
        let kind = kind(maker.kind).expect("a kind");
        let provider = Provider::new("p", kind, base, Some(Secret::new(key)), settings).expect("a provider");
        let now = std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_secs();
        let client = Client::new(ClientSettings::default());
        House { sim, maker, client, provider, now: i64::try_from(now).expect("a time") }
    }

    pub fn video(&self) -> &'static dyn VideoMaker {
        let video = self.provider.kind.video.expect("makes videos");
        assert!(video.speaks(self.maker.api));
        video
    }

    pub fn asking(&self) -> Asking<'_> {
        Asking { provider: &self.provider, now: self.now }
    }

    pub fn plan(&self, fields: &Value) -> Plan {
        self.plan_as(self.maker.variant, fields)
    }

    pub fn plan_as(&self, variant: &str, fields: &Value) -> Plan {
        let mut fields = fields.clone();
        fields["model"] = json!("m");
        let request = VideoRequest::from_json(fields.to_string().as_bytes()).expect("a request");
        plan(&request, &Offer::of(Variant::named(variant).expect("a variant"))).expect("a plan")
    }

    pub async fn create(&self, prompt: &str) -> Result<String, Fault> {
        self.send(&self.plan(&self.maker.plain(prompt)), TASK).await
    }

    pub async fn send(&self, plan: &Plan, external_id: &str) -> Result<String, Fault> {
        let job = Job { plan, model: self.maker.model, external_id };
        video::create(&self.client, self.video(), &self.asking(), &job).await
    }

    pub fn handle<'a>(&self, call: &'a str, id: &'a str) -> Handle<'a> {
        Handle { api: self.maker.api, call, id }
    }

    /// The operation of the maker's plain request.
    pub fn call(&self) -> &'static str {
        self.plan(&self.maker.plain("p")).call
    }

    pub async fn poll(&self, id: &str) -> Result<VideoReport, Fault> {
        video::poll(&self.client, self.video(), &self.asking(), &self.handle(self.call(), id), &|| {
            Box::pin(ready(true))
        })
        .await
    }

    /// Polls until the task has ended, faults included.
    pub async fn polls(&self, id: &str) -> Vec<Result<VideoReport, Fault>> {
        self.polls_of(self.call(), id).await
    }

    pub async fn polls_of(&self, call: &str, id: &str) -> Vec<Result<VideoReport, Fault>> {
        let mut seen = Vec::new();
        while seen.len() < 8 {
            let polled = video::poll(&self.client, self.video(), &self.asking(), &self.handle(call, id), &|| {
                Box::pin(ready(true))
            })
            .await;
            let over = polled
                .as_ref()
                .is_ok_and(|report| report.is_ready() || matches!(report.standing, VideoStanding::Ended(_)));
            seen.push(polled);
            if over {
                break;
            }
        }
        seen
    }

    /// The last report of a task made with this prompt.
    pub async fn ending(&self, prompt: &str) -> VideoReport {
        let id = self.create(prompt).await.expect("accepted");
        self.polls(&id).await.pop().expect("a poll").expect("a report")
    }

    pub async fn find(&self, plan: &Plan, external_id: &str) -> Result<Option<VideoSearch>, Fault> {
        self.find_in(plan, external_id, usize::MAX).await
    }

    /// With so many turns after the first.
    pub async fn find_in(&self, plan: &Plan, external_id: &str, turns: usize) -> Result<Option<VideoSearch>, Fault> {
        let prompt = Prompt::of(plan);
        let sought = self.sought(plan, external_id, prompt.as_ref());
        let left = AtomicUsize::new(turns);
        let turn: &SendTurn<'_> =
            &|| Box::pin(ready(left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()));
        video::find(&self.client, self.video(), &self.asking(), &sought, turn).await
    }

    /// What is looked for where the answer to this plan was lost about now.
    pub fn sought<'a>(&self, plan: &'a Plan, external_id: &'a str, prompt: Option<&'a Prompt>) -> Sought<'a> {
        Sought {
            api: self.maker.api,
            call: plan.call,
            model: self.maker.model,
            external_id,
            sent: (self.now - 5, self.now + 60),
            body: &plan.body,
            prompt: prompt.map(|prompt| prompt as &dyn Remembers),
        }
    }

    pub async fn fetch(&self, id: &str, link: &FileLink, range: Option<&str>) -> Result<(u16, Vec<u8>), Fault> {
        let range = range.map(|range| range.parse().expect("a header"));
        let handle = self.handle(self.call(), id);
        let reach = Reach { client: &self.client, public: &Client::public(ClientSettings::default()) };
        let opened = video::fetch(reach, self.video(), &self.asking(), &handle, link, range.as_ref()).await?;
        let until = tokio::time::Instant::now() + Duration::from_secs(5);
        Ok((opened.status, opened.body.whole(1 << 20, until).await.expect("a body").to_vec()))
    }

    /// Waits no longer than this for an answer.
    pub fn impatient(mut self, millis: u64) -> House {
        self.provider.settings.first_byte = Duration::from_millis(millis);
        self
    }

    /// Waits until the simulator has taken so many tasks on: a client that gave up may be ahead of
    /// it.
    pub async fn tasks_reach(&self, count: usize) {
        let until = tokio::time::Instant::now() + Duration::from_secs(20);
        while self.sim.videos() < count && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(self.sim.videos(), count);
    }

    /// Submissions the simulator has seen.
    pub fn submissions(&self) -> Vec<Received> {
        self.sim.received().into_iter().filter(|one| one.method == "POST").collect()
    }
}

pub fn apis(list: &[Api]) -> impl Iterator<Item = Maker> {
    list.iter().map(|api| Maker::of(*api))
}
