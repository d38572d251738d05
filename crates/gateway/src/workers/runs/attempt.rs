//! One try of a step: an ordinary call of the account with the try's Idempotency-Key, asked of our
//! own router. After a crash the same key is looked up first, so this both begins a call and finds
//! out what became of it.

use super::drive::RunInHand;
use super::gather::{NoStepAnswer, StepAnswer, file, video, whole};
use super::millis;
use crate::app::App;
use crate::call::{OVER_CONFIRMED, found_elsewhere};
use crate::endpoints::runs::ask::{self, StepAsk};
use crate::endpoints::runs::saved::StepWarning;
use crate::endpoints::video_create::VIDEOS;
use crate::who::caller::{Caller, StepCaller};
use crate::work::run_files::RunFileName;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tollgate_catalog::Money;
use tollgate_store::{AccountId, CallId, Ending, KeyedCall, StoreError, TaskId};
use tollgate_wire::error::Code;
use tollgate_workflows::{FileFacts, OutputFrom, StepOutput, StopReason};
use tower::ServiceExt as _;

/// An Idempotency-Key is known for a day after its call; a little less is certain.
const KEYS_LAST: Duration = Duration::from_secs(23 * 3_600);
/// The longest reason that is stored with a run.
const REASON_CHARS: usize = 300;

/// What a try came to.
pub(super) enum Attempted {
    Answered {
        call: CallId,
        charged: Money,
        outputs: BTreeMap<String, Value>,
        warnings: Vec<StepWarning>,
        passed: Result<(), String>,
    },
    Faulted {
        call: CallId,
        charged: Money,
        reason: String,
    },
    /// It ended with an answer, for which there is no room.
    Unstored {
        call: CallId,
        charged: Money,
    },
    /// It is under way, or could not be begun and may be later.
    Waits(Option<CallId>),
    NeverBegun,
    /// It ended, and what it gave is lost; or nobody can say.
    Unclear(Option<(CallId, Money)>),
    Stopped(StopReason),
    Refused(String),
}

impl Attempted {
    /// The call and what it has cost, as far as that is known.
    pub fn call(&self) -> Option<(CallId, Money)> {
        match self {
            Attempted::Answered { call, charged, .. }
            | Attempted::Faulted { call, charged, .. }
            | Attempted::Unstored { call, charged } => Some((*call, *charged)),
            Attempted::Waits(call) => call.map(|call| (call, Money::ZERO)),
            Attempted::Unclear(known) => *known,
            Attempted::NeverBegun | Attempted::Stopped(_) | Attempted::Refused(_) => None,
        }
    }
}

pub(super) async fn attempt(hand: &RunInHand<'_>, step: usize, key: &str) -> Result<Attempted, StoreError> {
    let (app, account) = (hand.app, hand.run.account);
    let asked = match ask::ask(&hand.steps, step, &hand.plan.inputs, &hand.saved.outputs) {
        Ok(asked) => asked,
        Err(refusal) => return Ok(Attempted::Refused(words(&refusal.message))),
    };
    match known(app, account, key).await? {
        None if is_forgotten(hand, key) => Ok(Attempted::Unclear(None)),
        // Nothing is bought for somebody who has cancelled.
        None if hand.saved.machine.cancelling => Ok(Attempted::NeverBegun),
        None => fresh(hand, step, &asked, key).await,
        Some(keyed) => begun(hand, step, &asked, (key, keyed)).await,
    }
}

/// The call that a key stands for.
async fn known(app: &App, account: AccountId, key: &str) -> Result<Option<KeyedCall>, StoreError> {
    app.store.call_with_key(account, Sha256::digest(key.as_bytes()).into()).await
}

/// Whether a call with this key may have ended so long ago that its key is forgotten: then nobody
/// can say that it never began.
fn is_forgotten(hand: &RunInHand<'_>, key: &str) -> bool {
    let begun = hand.saved.tries.iter().find(|one| one.key == key).and_then(|one| one.begun_at);
    begun.is_some_and(|at| hand.app.world.now_ms().saturating_sub(at) > millis(KEYS_LAST))
}

/// A try that has no call yet.
async fn fresh(hand: &RunInHand<'_>, step: usize, asked: &StepAsk, key: &str) -> Result<Attempted, StoreError> {
    let app = hand.app;
    // What a step makes must have a place before it is bought.
    let room = match &app.run_files {
        Some(files) if gives_file(hand, step) => files.has_room(hand.run.account, app.world.now_ms()).await,
        _ => true,
    };
    if !room {
        return Ok(Attempted::Stopped(StopReason::StorageFull));
    }
    let Some(caller) = caller(hand, key).await? else { return Ok(no_key()) };
    let model = hand.plan.steps.get(step).and_then(|planned| planned.model.as_deref());
    let request = match ask::request(app, &caller, asked, model, (key, hand.plan.host.as_deref())).await {
        Ok(request) => request,
        Err(refusal) if refusal.retry_after.is_some() => return Ok(Attempted::Waits(None)),
        Err(refusal) => return Ok(Attempted::Refused(words(&refusal.message))),
    };
    let reply = sent(hand, request).await;
    if reply.status().is_success() {
        return answered(hand, step, (key, asked.path == VIDEOS), reply).await;
    }
    refused(hand, step, key, reply).await
}

/// A try whose call is known. What has ended is not asked for again: it would be priced by what is
/// on sale now, and what it gave is stored.
async fn begun(
    hand: &RunInHand<'_>,
    step: usize,
    asked: &StepAsk,
    (key, keyed): (&str, KeyedCall),
) -> Result<Attempted, StoreError> {
    let (app, account, call) = (hand.app, hand.run.account, keyed.call);
    if let Some(task) = app.store.task(account, TaskId::of(call)).await? {
        if !task.state.is_final() {
            return Ok(Attempted::Waits(Some(call)));
        }
        let Some(caller) = caller(hand, key).await? else { return Ok(no_key()) };
        let Some(request) = task_request(&caller, &task.id.to_string(), "") else {
            return Ok(Attempted::Waits(Some(call)));
        };
        let reply = sent(hand, request).await;
        return match reply.status().is_success() {
            true => answered(hand, step, (key, asked.path == VIDEOS), reply).await,
            false => Ok(Attempted::Waits(Some(call))),
        };
    }
    let cost = charged(app, account, call).await?;
    match keyed.reply {
        _ if !keyed.ended => Ok(Attempted::Waits(Some(call))),
        // It ended, and what it gave was not stored.
        None => Ok(Attempted::Unclear(cost.map(|charged| (call, charged)))),
        Some(reply) if reply.status >= 400 => {
            let said: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
            if said["code"] == Code::ChargeStateUnknown.code() {
                return Ok(Attempted::Unclear(cost.map(|charged| (call, charged))));
            }
            let reason = words(said["message"].as_str().unwrap_or("the step failed"));
            Ok(Attempted::Faulted { call, charged: cost.unwrap_or(Money::ZERO), reason })
        }
        Some(reply) => match found_elsewhere(&reply) {
            None => answered(hand, step, (key, false), Response::new(Body::from(reply.body))).await,
            Some((name, _)) => match app.images.replies.stored(&name).await {
                Some(pieces) => answered(hand, step, (key, false), Response::new(Body::from_stream(pieces))).await,
                None => Ok(Attempted::Unclear(cost.map(|charged| (call, charged)))),
            },
        },
    }
}

fn no_key() -> Attempted {
    Attempted::Refused("the key that began this run does not work any more".to_owned())
}

/// Whether a step gives a file that is stored.
fn gives_file(hand: &RunInHand<'_>, step: usize) -> bool {
    hand.steps.steps[step].step.gives.values().any(|from| *from == OutputFrom::Body)
}

/// Who asks: the key that the run was begun with, for no more than is left of what was confirmed.
pub(super) async fn caller(hand: &RunInHand<'_>, key: &str) -> Result<Option<Arc<Caller>>, StoreError> {
    let store = &hand.app.store;
    let own = store.keys(hand.run.account).await?.into_iter().find(|one| one.id == hand.run.key);
    let Some(own) = own else { return Ok(None) };
    let Some(found) = store.key_by_hash(own.hash).await? else { return Ok(None) };
    // What this very try may have cost already is not held a second time.
    let spent = hand.saved.tries.iter().find(|one| one.key == key).map_or(Money::ZERO, |one| one.charged);
    let cap = hand.saved.left().checked_add(spent).unwrap_or(Money::MAX);
    Ok(Some(Arc::new(Caller::capped(found, Some(cap)))))
}

pub(super) async fn sent(hand: &RunInHand<'_>, request: Request) -> Response {
    match hand.router.clone().oneshot(request).await {
        Ok(reply) => reply,
        Err(never) => match never {},
    }
}

/// A request about a task of the account.
pub(super) fn task_request(caller: &Arc<Caller>, id: &str, below: &str) -> Option<Request> {
    let mut request = Request::builder().uri(format!("{VIDEOS}/{id}{below}")).body(Body::empty()).ok()?;
    request.extensions_mut().insert(StepCaller(caller.clone()));
    Some(request)
}

fn words(message: &str) -> String {
    message.chars().take(REASON_CHARS).collect()
}

/// What a call has cost; nothing while it has no row.
async fn charged(app: &App, account: AccountId, call: CallId) -> Result<Option<Money>, StoreError> {
    Ok(app.store.usage_of(account, call).await?.map(|row| row.charge))
}

async fn refused(hand: &RunInHand<'_>, step: usize, key: &str, reply: Response) -> Result<Attempted, StoreError> {
    let (app, account) = (hand.app, hand.run.account);
    let named = reply.headers().get("x-request-id").and_then(|id| id.to_str().ok()?.parse::<CallId>().ok());
    let body = whole(reply.into_body()).await.unwrap_or_default();
    let error: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (code, reason) = (error["error"]["code"].as_str().unwrap_or_default(), error["error"]["reason"].as_str());
    let code = Code::ALL.iter().copied().find(|one| one.code() == code).unwrap_or(Code::Internal);
    let message = words(error["error"]["message"].as_str().unwrap_or("the step failed"));
    let keyed = known(app, account, key).await?;
    Ok(match (code, keyed) {
        (Code::IdempotencyInProgress | Code::ChargeStateUnknown, keyed) => Attempted::Waits(keyed.map(|one| one.call)),
        (Code::IdempotencyConflict, keyed) => {
            let known = match keyed.map(|one| one.call) {
                Some(call) => charged(app, account, call).await?.map(|charged| (call, charged)),
                None => None,
            };
            Attempted::Unclear(known)
        }
        // It began and ended: what it cost is in its row.
        (_, Some(KeyedCall { call, ended: true, .. })) => {
            let charged = charged(app, account, call).await?.unwrap_or(Money::ZERO);
            Attempted::Faulted { call, charged, reason: message }
        }
        (_, Some(KeyedCall { call, .. })) => Attempted::Waits(Some(call)),
        (_, None) => match (not_begun(hand, step, code, reason, message), named) {
            // One that ended for nothing has given its key back, and has a row of its own.
            (Attempted::Refused(reason), Some(call)) => match app.store.usage_of(account, call).await? {
                Some(row) if row.ending != Ending::Refused => Attempted::Faulted { call, charged: row.charge, reason },
                _ => Attempted::Refused(reason),
            },
            (other, _) => other,
        },
    })
}

/// Nothing was held and nothing sent.
fn not_begun(hand: &RunInHand<'_>, step: usize, code: Code, reason: Option<&str>, message: String) -> Attempted {
    match code {
        Code::Conflict if reason == Some(OVER_CONFIRMED) => {
            // Dearer than it was quoted, or longer than it was quoted for.
            let serving = hand.app.serving.load();
            let version = serving.catalog.pricing_version(hand.app.world.now_ms());
            let same = hand.plan.steps.get(step).is_some_and(|quoted| quoted.pricing_version == version);
            Attempted::Stopped(if same { StopReason::OverConfirmed } else { StopReason::PriceRose })
        }
        Code::InsufficientBalance
        | Code::KeySpendCapReached
        | Code::AccountSpendLimitReached
        | Code::AccountSuspended
        | Code::ModelRequiresTopup => Attempted::Stopped(StopReason::OutOfMoney),
        Code::ModelNotFound
        | Code::ModelNotAllowed
        | Code::NoRouteAvailable
        | Code::SocialDataUnavailable
        | Code::SocialEndpointNotFound => Attempted::Stopped(StopReason::ModelOffSale),
        Code::Overloaded
        | Code::LedgerUnavailable
        | Code::ServerDraining
        | Code::StorageFull
        | Code::RateLimitExceeded
        | Code::SocialDataCapacityReached => Attempted::Waits(None),
        _ => Attempted::Refused(message),
    }
}

/// Takes what a call gave. `task`: the answer is a task, and what it made is a file of its own.
async fn answered(
    hand: &RunInHand<'_>,
    step: usize,
    (key, task): (&str, bool),
    reply: Response,
) -> Result<Attempted, StoreError> {
    let (app, account) = (hand.app, hand.run.account);
    let wants_file = gives_file(hand, step);
    let gathered = if wants_file && !task {
        file(app, account, reply.into_body()).await.map(StepAnswer::File)
    } else {
        whole(reply.into_body()).await.map(StepAnswer::Bytes)
    };
    // The body is read, so the call has ended.
    let Some(KeyedCall { call, .. }) = known(app, account, key).await? else { return Ok(Attempted::Unclear(None)) };
    let row = app.store.usage_of(account, call).await?;
    let cost = row.as_ref().map(|row| row.charge);
    let mut warnings = StepWarning::of_row(row.and_then(|row| row.dropped).as_deref().unwrap_or_default());
    let gathered = match gathered {
        Ok(StepAnswer::Bytes(bytes)) if task => {
            let mut shown: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            warnings.extend(serde_json::from_value::<Vec<_>>(shown["warnings"].take()).unwrap_or_default());
            match (shown["status"].as_str().unwrap_or_default(), cost) {
                ("completed", Some(_)) if wants_file => video(hand, key, &shown).await?,
                ("completed", Some(_)) => Ok(StepAnswer::Bytes(bytes)),
                ("failed", Some(charged)) => {
                    let reason = words(shown["error"]["message"].as_str().unwrap_or("the video was not made"));
                    return Ok(Attempted::Faulted { call, charged, reason });
                }
                _ => return Ok(Attempted::Waits(Some(call))),
            }
        }
        other => other,
    };
    let charged = cost.unwrap_or(Money::ZERO);
    let gathered = match gathered {
        Ok(gathered) => gathered,
        Err(NoStepAnswer::Faulty(reason)) => return Ok(Attempted::Faulted { call, charged, reason }),
        Err(NoStepAnswer::NoRoom(reason)) => {
            tracing::warn!(run = %hand.run.id, reason, "what a step made could not be stored");
            return Ok(Attempted::Unstored { call, charged });
        }
        // The file is there, and paid; it is asked for again.
        Err(NoStepAnswer::Later(reason)) => {
            tracing::warn!(run = %hand.run.id, reason, "the video of a step cannot be had yet");
            return Ok(Attempted::Waits(Some(call)));
        }
    };
    if cost.is_none() {
        return Ok(Attempted::Waits(Some(call)));
    }
    let (outputs, passed) = outputs(hand, step, &gathered);
    Ok(Attempted::Answered { call, charged, outputs, warnings, passed })
}

/// What a step gave, by name, and whether that passes its checks.
fn outputs(hand: &RunInHand<'_>, at: usize, gathered: &StepAnswer) -> (BTreeMap<String, Value>, Result<(), String>) {
    let one = &hand.steps.steps[at];
    let json = match gathered {
        // An answer that is no JSON, such as subtitles, is its text.
        StepAnswer::Bytes(bytes) => serde_json::from_slice(bytes)
            .unwrap_or_else(|_| std::str::from_utf8(bytes).map_or(Value::Null, Value::from)),
        StepAnswer::File(_) => Value::Null,
    };
    let mut values = BTreeMap::new();
    let mut missing = None;
    for (name, from) in &one.step.gives {
        let value = match (from, gathered) {
            (OutputFrom::At(pointer), _) => json.pointer(pointer).cloned(),
            (OutputFrom::Body, StepAnswer::File(file)) => Some(Value::from(file.as_str())),
            (OutputFrom::Text, StepAnswer::Bytes(bytes)) => std::str::from_utf8(bytes).ok().map(Value::from),
            (OutputFrom::Body, StepAnswer::Bytes(_)) | (OutputFrom::Text, StepAnswer::File(_)) => None,
        };
        match value {
            Some(value) => drop(values.insert(name.clone(), value)),
            None => missing = Some(format!("the answer has no {name}")),
        }
    }
    let facts = values.iter().map(|(name, value)| (name.clone(), output_of(value))).collect();
    let passed = match missing {
        Some(missing) => Err(missing),
        None => one.passes(&facts),
    };
    (values, passed)
}

/// A value as checks see it: a file by its facts.
pub(super) fn output_of(value: &Value) -> StepOutput {
    match value.as_str().and_then(RunFileName::read) {
        // That it is there at all is what its name says.
        Some(file) => StepOutput::File(FileFacts { bytes: 1, millis: file.millis, has_video: file.has_video() }),
        None => StepOutput::Json(value.clone()),
    }
}
