//! The job `provider_test`: one cheap call for each thing that is sold of a provider. It costs what
//! the provider asks, so it needs a fresh proof and a reason, and one runs at a time over all
//! replicas. Its calls are those of `tollgate provider test`; answers of the provider are not
//! shown.

use super::job_runs::{JobFailed, flag, word};
use super::{Form, wrong};
use crate::app::App;
use crate::jobs::JobCounter;
use crate::refusal::Refusal;
use crate::sale::ProviderTest;
use crate::settings::ability_named;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_catalog::form::did_you_mean;
use tollgate_upstream::Ability;
use tollgate_wire::error::Code;

/// The longest name of a model.
const LONGEST_MODEL: usize = 200;
/// What is made of sound and pictures.
const MEDIA: i64 = 5;

/// What was asked for, held against the providers there are.
pub fn read(app: &App, form: &mut Form) -> Result<ProviderTest, Refusal> {
    let missing =
        || Refusal::about(Code::MissingParameter, "provider", "`provider` is required: its name in the configuration.");
    let provider = word(form, "provider")?.ok_or_else(missing)?;
    let serving = app.serving.load();
    if !serving.providers.contains_key(&provider) {
        let hint = did_you_mean(&provider, serving.providers.keys().map(String::as_str));
        let why = format!("`provider`: no provider of the configuration has this name{hint}.");
        return Err(Refusal::about(Code::InvalidParameter, "provider", why));
    }
    let unknown = |why: String| Refusal::about(Code::InvalidParameter, "endpoint", format!("`endpoint`: {why}."));
    let only = word(form, "endpoint")?.map(|word| ability_named(&word)).transpose().map_err(unknown)?;
    if let Some(why) = only.and_then(|only| serving.providers.get(&provider)?.lacks(only)) {
        return Err(unknown(why));
    }
    let model = word(form, "model")?;
    if model.as_ref().is_some_and(|model| model.is_empty() || model.len() > LONGEST_MODEL) {
        return Err(wrong("model", "the provider's name for a model"));
    }
    let (media, plan) = (flag(form, "media")?, flag(form, "plan")?);
    if media && model.is_some() {
        return Err(wrong("model", "not for a test of media: the cheapest of the catalog is taken"));
    }
    Ok(ProviderTest { provider, only, model, media, send: !plan })
}

/// As it is shown.
pub fn asked(test: &ProviderTest) -> Value {
    json!({
        "provider": test.provider, "endpoint": test.only.map(|only| only.word()), "model": test.model,
        "media": test.media, "plan": !test.send, "counts": "things to try",
    })
}

/// How much there is to try, where somebody can.
pub fn prepared(app: &App, test: &ProviderTest) -> Result<Arc<JobCounter>, Refusal> {
    if app.publishing.tester.get().is_none() {
        return Err(Refusal::new(Code::Conflict, "Not done: this gateway's configuration did not come from a file."));
    }
    let serving = app.serving.load();
    let has = |one: &Ability| serving.providers.get(&test.provider).is_some_and(|provider| provider.kind.has(*one));
    let all = i64::try_from(Ability::ALL.iter().filter(|one| has(one)).count()).unwrap_or(0);
    Ok(JobCounter::of(match (test.only, test.media) {
        (Some(_), _) => 1,
        (None, true) => MEDIA,
        (None, false) => all,
    }))
}

/// Rows as the command line prints them.
pub async fn run(app: &App, test: ProviderTest, counter: Arc<JobCounter>) -> Result<Value, JobFailed> {
    let tester = app.publishing.tester.get().cloned();
    let tester = tester.ok_or_else(|| JobFailed::because("Nobody can try a provider here.".to_owned()))?;
    let rows = tester.test(test, app.serving.load_full(), counter).await;
    let rows = rows.map_err(|why| JobFailed::because(format!("{why}.")))?;
    let failed = rows.iter().filter(|row| row["outcome"] == "failed").count();
    Ok(json!({ "failed": failed, "rows": rows }))
}
