//! One try of a step: an ordinary call of the account with the try's Idempotency-Key, asked of our
//! own router. The same key is asked again after a crash, so this both begins a call and finds out
//! what became of it.

use super::drive::RunInHand;
use crate::app::App;
use crate::call::OVER_CONFIRMED;
use crate::door::spool::{IN_MEMORY, SpoolTerms};
use crate::endpoints::runs::ask::{self, StepAsk};
use crate::endpoints::runs::assets::{shelve, whose};
use crate::endpoints::video_create::VIDEOS;
use crate::refusal::Refusal;
use crate::who::caller::{Caller, StepCaller};
use crate::work::run_files::{RunFileName, RunFileWatch};
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;
use tollgate_catalog::Money;
use tollgate_store::{AccountId, CallId, StoreError, TaskId};
use tollgate_wire::error::Code;
use tollgate_workflows::{FileFacts, OutputFrom, StepOutput, StopReason};
use tower::ServiceExt as _;

/// The longest answer that is read into memory.
const ANSWER_BYTES: usize = 1 << 20;
/// The longest reason that is stored with a run.
const REASON_CHARS: usize = 300;

/// What a try came to.
pub(super) enum Attempted {
    Answered {
        call: CallId,
        charged: Money,
        outputs: BTreeMap<String, Value>,
        passed: Result<(), String>,
    },
    Faulted {
        call: CallId,
        charged: Money,
        reason: String,
    },
    /// It is under way, or could not be begun and may be later.
    Waits(Option<CallId>),
    /// It ended, and what it gave is lost; or nobody can say.
    Unclear(Option<(CallId, Money)>),
    Stopped(StopReason),
    Refused(String),
}

impl Attempted {
    /// The call and what it has cost, as far as that is known.
    pub fn call(&self) -> Option<(CallId, Money)> {
        match self {
            Attempted::Answered { call, charged, .. } | Attempted::Faulted { call, charged, .. } => {
                Some((*call, *charged))
            }
            Attempted::Waits(call) => call.map(|call| (call, Money::ZERO)),
            Attempted::Unclear(known) => *known,
            Attempted::Stopped(_) | Attempted::Refused(_) => None,
        }
    }
}

pub(super) async fn attempt(hand: &RunInHand<'_>, step: usize, key: &str) -> Result<Attempted, StoreError> {
    let (app, account) = (hand.app, hand.run.account);
    if let Some((call, false)) = known(app, account, key).await?
        && app.store.task(account, TaskId::of(call)).await?.is_some_and(|task| !task.state.is_final())
    {
        return Ok(Attempted::Waits(Some(call)));
    }
    let Some(caller) = caller(hand, key).await? else {
        return Ok(Attempted::Refused("the key that began this run does not work any more".to_owned()));
    };
    let asked = match ask::ask(&hand.steps, step, &hand.plan.inputs, &hand.saved.outputs) {
        Ok(asked) => asked,
        Err(refusal) => return Ok(Attempted::Refused(words(&refusal.message))),
    };
    let model = hand.plan.steps.get(step).and_then(|planned| planned.model.as_deref());
    let request = match ask::request(app, &caller, &asked, model, (key, hand.plan.host.as_deref())).await {
        Ok(request) => request,
        Err(refusal) if refusal.retry_after.is_some() => return Ok(Attempted::Waits(None)),
        Err(refusal) => return Ok(Attempted::Refused(words(&refusal.message))),
    };
    let reply = sent(hand, request).await;
    if reply.status().is_success() {
        return answered(hand, &caller, step, &asked, key, reply).await;
    }
    refused(hand, step, key, reply).await
}

/// The call that a key stands for, and whether it has ended.
async fn known(app: &App, account: AccountId, key: &str) -> Result<Option<(CallId, bool)>, StoreError> {
    app.store.call_with_key(account, Sha256::digest(key.as_bytes()).into()).await
}

/// Who asks: the key that the run was begun with, for no more than is left of what was confirmed.
async fn caller(hand: &RunInHand<'_>, key: &str) -> Result<Option<Arc<Caller>>, StoreError> {
    let store = &hand.app.store;
    let own = store.keys(hand.run.account).await?.into_iter().find(|one| one.id == hand.run.key);
    let Some(own) = own else { return Ok(None) };
    let Some(found) = store.key_by_hash(own.hash).await? else { return Ok(None) };
    // What this very try may have cost already is not held a second time.
    let spent = hand.saved.tries.iter().find(|one| one.key == key).map_or(Money::ZERO, |one| one.charged);
    let cap = hand.saved.left().checked_add(spent).unwrap_or(Money::MAX);
    Ok(Some(Arc::new(Caller::capped(found, Some(cap)))))
}

async fn sent(hand: &RunInHand<'_>, request: Request) -> Response {
    match hand.router.clone().oneshot(request).await {
        Ok(reply) => reply,
        Err(never) => match never {},
    }
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
    let body = whole(reply.into_body()).await.unwrap_or_default();
    let error: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (code, reason) = (error["error"]["code"].as_str().unwrap_or_default(), error["error"]["reason"].as_str());
    let code = Code::ALL.iter().copied().find(|one| one.code() == code).unwrap_or(Code::Internal);
    let message = words(error["error"]["message"].as_str().unwrap_or("the step failed"));
    let call = known(app, account, key).await?;
    Ok(match (code, call) {
        (Code::IdempotencyInProgress | Code::ChargeStateUnknown, call) => Attempted::Waits(call.map(|(call, _)| call)),
        (Code::IdempotencyConflict, call) => {
            let call = call.map(|(call, _)| call);
            let known = match call {
                Some(call) => charged(app, account, call).await?.map(|charged| (call, charged)),
                None => None,
            };
            Attempted::Unclear(known)
        }
        // It began and ended: what it cost is in its row.
        (_, Some((call, true))) => {
            let charged = charged(app, account, call).await?.unwrap_or(Money::ZERO);
            Attempted::Faulted { call, charged, reason: message }
        }
        (_, Some((call, false))) => Attempted::Waits(Some(call)),
        (_, None) => not_begun(hand, step, code, reason, message),
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

async fn answered(
    hand: &RunInHand<'_>,
    caller: &Arc<Caller>,
    step: usize,
    asked: &StepAsk,
    key: &str,
    reply: Response,
) -> Result<Attempted, StoreError> {
    let (app, account) = (hand.app, hand.run.account);
    let wants_file = hand.steps.steps[step].step.gives.values().any(|from| *from == OutputFrom::Body);
    let task = asked.path == VIDEOS;
    let gathered = if wants_file && !task {
        file(app, account, reply.into_body()).await.map(Gathered::File)
    } else {
        whole(reply.into_body()).await.map(Gathered::Bytes)
    };
    // The body is read, so the call has ended.
    let Some((call, _)) = known(app, account, key).await? else { return Ok(Attempted::Unclear(None)) };
    let cost = charged(app, account, call).await?;
    let gathered = match gathered {
        Ok(gathered) => gathered,
        Err(reason) => {
            let charged = cost.unwrap_or(Money::ZERO);
            return Ok(Attempted::Faulted { call, charged, reason });
        }
    };
    let gathered = match gathered {
        Gathered::Bytes(bytes) if task => {
            let shown: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            match (shown["status"].as_str().unwrap_or_default(), cost) {
                ("completed", Some(_)) => {
                    let made = if wants_file { video(hand, caller, &shown).await } else { Ok(Gathered::Bytes(bytes)) };
                    match made {
                        Ok(made) => made,
                        // The file is there, and paid; it is asked for again.
                        Err(reason) => {
                            tracing::warn!(run = %hand.run.id, reason, "the video of a step cannot be had yet");
                            return Ok(Attempted::Waits(Some(call)));
                        }
                    }
                }
                ("failed", Some(charged)) => {
                    let reason = words(shown["error"]["message"].as_str().unwrap_or("the video was not made"));
                    return Ok(Attempted::Faulted { call, charged, reason });
                }
                _ => return Ok(Attempted::Waits(Some(call))),
            }
        }
        other => other,
    };
    let Some(charged) = cost else { return Ok(Attempted::Waits(Some(call))) };
    let (outputs, passed) = outputs(hand, step, &gathered);
    Ok(Attempted::Answered { call, charged, outputs, passed })
}

/// An answer that was read.
enum Gathered {
    Bytes(Bytes),
    /// A file of the run.
    File(String),
}

/// What a step gave, by name, and whether that passes its checks.
fn outputs(hand: &RunInHand<'_>, at: usize, gathered: &Gathered) -> (BTreeMap<String, Value>, Result<(), String>) {
    let one = &hand.steps.steps[at];
    let json = match gathered {
        Gathered::Bytes(bytes) => serde_json::from_slice::<Value>(bytes).unwrap_or_default(),
        Gathered::File(_) => Value::Null,
    };
    let mut values = BTreeMap::new();
    let mut missing = None;
    for (name, from) in &one.step.gives {
        let value = match (from, gathered) {
            (OutputFrom::At(pointer), _) => json.pointer(pointer).cloned(),
            (OutputFrom::Body, Gathered::File(file)) => Some(Value::from(file.as_str())),
            (OutputFrom::Text, Gathered::Bytes(bytes)) => std::str::from_utf8(bytes).ok().map(Value::from),
            (OutputFrom::Body, Gathered::Bytes(_)) | (OutputFrom::Text, Gathered::File(_)) => None,
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

/// Reads a body of at most [`ANSWER_BYTES`].
async fn whole(mut body: Body) -> Result<Bytes, String> {
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(|_| "the answer broke off".to_owned())?.into_data() else { continue };
        if all.len() + piece.len() > ANSWER_BYTES {
            // Read to its end all the same: what is paid for is not cut off.
            while let Some(Ok(_)) = body.frame().await {}
            return Err(format!("the answer is longer than {ANSWER_BYTES} bytes"));
        }
        all.extend_from_slice(&piece);
    }
    Ok(all.freeze())
}

/// Reads a body into a file of the run.
async fn file(app: &Arc<App>, account: AccountId, mut body: Body) -> Result<String, String> {
    let most = app.settings.limits.upload_bytes as u64;
    let terms = SpoolTerms { whose: Some(whose(account)), most, in_memory: IN_MEMORY };
    let lost = |refusal: Refusal| refusal.message;
    let mut spooling = app.spool.begin(terms, RunFileWatch::default()).await.map_err(lost)?;
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(|_| "the answer broke off".to_owned())?.into_data() else { continue };
        spooling.push(&piece).await.map_err(lost)?;
    }
    let spooled = spooling.finish().await.map_err(lost)?;
    shelve(app, account, spooled.file, spooled.watch).await.map_err(lost)
}

/// The file of a video that is made.
async fn video(hand: &RunInHand<'_>, caller: &Arc<Caller>, shown: &Value) -> Result<Gathered, String> {
    let id = shown["id"].as_str().unwrap_or_default();
    let request = Request::builder().uri(format!("{VIDEOS}/{id}/content")).body(Body::empty());
    let mut request = request.map_err(|_| "the task has no name".to_owned())?;
    request.extensions_mut().insert(StepCaller(caller.clone()));
    let reply = sent(hand, request).await;
    if !reply.status().is_success() {
        return Err(format!("its file is refused with {}", reply.status()));
    }
    file(hand.app, hand.run.account, reply.into_body()).await.map(Gathered::File)
}
