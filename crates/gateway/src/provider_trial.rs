//! `provider test` for operators over HTTP: the same calls that the command line makes, by the
//! configuration as it is now and the catalog that is on sale. It is put into a running house from
//! above, because what costs more than a word is asked by a gateway of its own.

use crate::jobs::JobCounter;
use crate::media_trial::{MediaOrder, try_media};
use crate::sale::{ProviderTest, ProviderTester, Serving};
use crate::settings::ConfigSource;
use crate::start::Running;
use crate::trial::{TrialOrder, TrialResult, try_provider};
use crate::world::World;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Lets operators of a house try its providers out.
pub fn offer(running: &Running, source: ConfigSource, world: World) {
    let tester = Tester { source, world, tracker: running.app.tracker.clone() };
    let _ = running.app.publishing.tester.set(Arc::new(tester));
}

#[derive(Clone)]
struct Tester {
    source: ConfigSource,
    world: World,
    tracker: TaskTracker,
}

impl ProviderTester for Tester {
    fn test(
        &self,
        order: ProviderTest,
        serving: Arc<Serving>,
        progress: Arc<JobCounter>,
    ) -> BoxFuture<'static, Result<Vec<Value>, String>> {
        let own = self.clone();
        let stop = CancellationToken::new();
        // A gateway that was put up has to be taken down in order, also when nobody waits any more.
        let guard = stop.clone().drop_guard();
        let (said, heard) = oneshot::channel();
        let work = async move {
            let _ = said.send(own.tried(order, serving, &progress, stop).await);
        };
        let tracker = self.tracker.clone();
        Box::pin(async move {
            let _stops = guard;
            tracker.spawn(work);
            heard.await.unwrap_or_else(|_| Err("the test was given up".to_owned()))
        })
    }
}

impl Tester {
    async fn tried(
        &self,
        order: ProviderTest,
        serving: Arc<Serving>,
        progress: &JobCounter,
        stop: CancellationToken,
    ) -> Result<Vec<Value>, String> {
        let source = self.source.clone();
        let read = move || source.load_again(&serving.catalog, Some(&serving.text));
        let loaded = tokio::task::spawn_blocking(read).await.map_err(|error| error.to_string())?;
        let wrong = |first: &tollgate_catalog::Mistake| format!("the configuration is wrong now: {first}");
        let loaded = loaded.map_err(|mistakes| mistakes.first().map(wrong).unwrap_or_default())?;
        let (provider, only, now) = (order.provider.as_str(), order.only, self.world.now_ms());
        let results: Vec<TrialResult> = if order.media {
            let asked = MediaOrder { provider, only, send: order.send, progress: Some(progress), stop: Some(stop) };
            try_media(loaded, &asked, self.world.clone()).await?
        } else {
            let (model, plan, progress) = (order.model.as_deref(), !order.send, Some(progress));
            let asked = TrialOrder { provider, only, model, plan, now, progress };
            tokio::select! {
                tried = try_provider(&loaded, &asked) => tried?,
                () = stop.cancelled() => Vec::new(),
            }
        };
        Ok(results.iter().map(|result| json!(result)).collect())
    }
}
