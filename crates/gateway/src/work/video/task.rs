//! A video that is to be made, as a task of the till's.

use super::{VideoAsk, VideoDesk, looking};
use crate::call::task::{TaskHabits, TaskWork};
use crate::call::{Priced, Till};
use crate::refusal::Refusal;
use crate::sale::Serving;
use crate::work::video::StoredPlan;
use std::sync::Arc;
use tollgate_catalog::Route;
use tollgate_store::TaskId;
use tollgate_upstream::video::{self, Asking, Job};
use tollgate_upstream::{Fault, Provider};

pub struct VideoTask {
    pub ask: VideoAsk,
    pub desk: Arc<VideoDesk>,
}

impl TaskWork for VideoTask {
    const PRODUCT: &'static str = "video";

    fn priced(&self) -> &dyn Priced {
        &self.ask
    }

    fn plan(&self, id: TaskId) -> Result<String, Refusal> {
        Ok(StoredPlan::of(self.ask.plan()?, id, &self.desk.secrets).text())
    }

    fn goes_to(&self, serving: &Serving, provider: &Provider) -> bool {
        self.ask.goes_to(serving, provider)
    }

    fn is_sure(&self, serving: &Serving) -> bool {
        self.ask.is_sure(serving)
    }

    fn habits(&self, provider: &Provider) -> Option<TaskHabits> {
        let plan = self.ask.plan().ok()?;
        let video = provider.kind.video.filter(|video| video.speaks(plan.api()))?;
        Some(looking::habits(video.habits(plan.api()), plan.seconds.unwrap_or(plan.bound.seconds)))
    }

    async fn create(&self, till: &Till, provider: &Arc<Provider>, route: &Route, id: TaskId) -> Result<String, Fault> {
        // What cannot be planned or spoken was refused before.
        let plan = self.ask.plan().map_err(|_| Fault::unreachable())?;
        let video = provider.kind.video.ok_or_else(Fault::unreachable)?;
        let external_id = id.to_string();
        let asking = Asking { provider, now: till.world.now_ms() / 1_000 };
        let job = Job { plan, model: &route.upstream_model, external_id: &external_id };
        video::create(&till.client, video, &asking, &job).await
    }
}
