//! What is shown of workflows: the records as they stand, written once per catalog and set of
//! moves. All replicas read the moves from the store.

use super::Serving;
use super::workflows::{BoundWorkflow, Standing};
use crate::world::Millis;
use bytes::Bytes;
use http::HeaderValue;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tollgate_store::{Store, StoreError, WorkflowMove};
use tollgate_workflows::WorkflowStage;

#[derive(Default)]
pub struct WorkflowBoard(Mutex<Shown>);

#[derive(Default)]
struct Shown {
    /// The catalog that this is of.
    of: Weak<Serving>,
    moves: Vec<WorkflowMove>,
    /// When evidence of one of them gets too old.
    until: Option<Millis>,
    all: Arc<BTreeMap<String, ShownWorkflow>>,
    list: WorkflowPage,
    /// The same by locale.
    in_locale: BTreeMap<String, WorkflowPage>,
}

/// A record as it stands.
pub struct ShownWorkflow {
    pub standing: Standing,
    pub newest: Option<WorkflowMove>,
    pub bound: Arc<BoundWorkflow>,
    pub page: WorkflowPage,
}

/// A reply that is ready.
#[derive(Clone, Default)]
pub struct WorkflowPage {
    pub body: Bytes,
    pub etag: Option<HeaderValue>,
}

impl WorkflowPage {
    pub fn of(body: impl Into<Bytes>) -> WorkflowPage {
        let body = body.into();
        let mut etag = String::from("\"");
        for byte in &Sha256::digest(&body)[..12] {
            let _ = write!(etag, "{byte:02x}");
        }
        etag.push('"');
        WorkflowPage { body, etag: HeaderValue::try_from(etag).ok() }
    }
}

impl WorkflowBoard {
    /// Looks at the store, and writes the pages anew where moves or catalog are others than before.
    pub async fn look(&self, store: &Store, serving: &Arc<Serving>, now: Millis) -> Result<(), StoreError> {
        // Most houses have no workflows, and nobody needs to ask.
        let moves = if serving.workflows.is_empty() { Vec::new() } else { store.workflow_states().await? };
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = Arc::downgrade(serving);
        let stands = shown.until.is_none_or(|until| now < until);
        if Weak::ptr_eq(&shown.of, &of) && shown.moves == moves && stands {
            return Ok(());
        }
        *shown = written(serving, moves, of, now);
        Ok(())
    }

    /// Every workflow, whoever may see it.
    pub fn all(&self) -> Arc<BTreeMap<String, ShownWorkflow>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).all.clone()
    }

    /// The list that everybody may read, whole or of one locale.
    pub fn list(&self, locale: Option<&str>) -> WorkflowPage {
        let shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match locale {
            None => shown.list.clone(),
            Some(locale) => shown.in_locale.get(locale).cloned().unwrap_or_else(|| listed(&[])),
        }
    }
}

impl ShownWorkflow {
    /// Drafts are the operators' own.
    pub fn is_public(&self) -> bool {
        self.standing.stage > WorkflowStage::Draft
    }

    /// It is in lists.
    pub fn is_listed(&self) -> bool {
        self.is_public() && self.bound.workflow.record.discovery.indexable
    }
}

fn written(serving: &Arc<Serving>, moves: Vec<WorkflowMove>, of: Weak<Serving>, now: Millis) -> Shown {
    let mut all = BTreeMap::new();
    let mut records: Vec<Value> = Vec::new();
    let mut in_locale: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (slug, bound) in &serving.workflows {
        let newest = moves.iter().find(|moved| moved.slug == *slug);
        let (standing, record) = (bound.standing(newest, now), bound.shown(newest, now));
        if bound.workflow.claimed > standing.stage {
            tracing::warn!(
                slug,
                claimed = bound.workflow.claimed.word(),
                is = standing.stage.word(),
                "a workflow claims more than its evidence proves; it is shown as what it is"
            );
        }
        let shown = ShownWorkflow {
            standing,
            newest: newest.cloned(),
            bound: bound.clone(),
            page: WorkflowPage::of(record.to_string()),
        };
        if shown.is_listed() {
            for locale in &bound.workflow.record.discovery.locales {
                in_locale.entry(locale.clone()).or_default().push(record.clone());
            }
            records.push(record);
        }
        all.insert(slug.clone(), shown);
    }
    let in_locale = in_locale.into_iter().map(|(locale, records)| (locale, listed(&records))).collect();
    let until = moves.iter().filter_map(|moved| BoundWorkflow::changes_at(Some(moved))).filter(|at| *at > now).min();
    Shown { of, moves, until, all: Arc::new(all), list: listed(&records), in_locale }
}

fn listed(records: &[Value]) -> WorkflowPage {
    WorkflowPage::of(json!({ "object": "list", "data": records }).to_string())
}
