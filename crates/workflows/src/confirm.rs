//! What a customer confirms before anything is sent: the sheet about privacy, the most it may cost,
//! and each input that changes what it costs.

use crate::digest::{canonical_json, sha256_hex};
use crate::record::WorkflowRecord;
use crate::rules::CONFIRMED_WORDS;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tollgate_catalog::Money;

/// What a customer has confirmed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confirmation {
    /// The digest of the sheet that was read.
    pub privacy: Option<String>,
    pub max_cost: Option<Money>,
    pub items: BTreeSet<String>,
}

/// The digest of the sheet about privacy: a sheet that changed has to be read again.
pub fn privacy_digest(record: &Value) -> String {
    sha256_hex(&canonical_json(&record["privacy_preflight"]))
}

/// The names that must be in `items`: inputs that change the cost and differ from their default,
/// and the inputs that the recovery policy names. Words of the policy that are no inputs have
/// places of their own: `cost` and `privacy` in the confirmation, the others where they come up.
pub fn items_to_confirm(record: &WorkflowRecord, inputs: &BTreeMap<String, Value>) -> BTreeSet<String> {
    let dear = record.inputs.iter().filter(|input| {
        let value = inputs.get(&input.id).unwrap_or(&Value::Null);
        input.cost_sensitive && *value != input.default
    });
    let named = record.recovery_policy.confirmation_required_for.iter();
    let named = named.filter(|name| !CONFIRMED_WORDS.contains(&name.as_str()));
    dear.map(|input| &input.id).chain(named).cloned().collect()
}

impl Confirmation {
    /// What is still to be confirmed, in words of the confirmation.
    pub fn lacks(&self, record: &WorkflowRecord, sheet: &str, inputs: &BTreeMap<String, Value>) -> Vec<String> {
        let mut lacks = Vec::new();
        if self.privacy.as_deref() != Some(sheet) {
            lacks.push("privacy".to_owned());
        }
        if self.max_cost.is_none() {
            lacks.push("cost".to_owned());
        }
        lacks.extend(items_to_confirm(record, inputs).difference(&self.items).cloned());
        lacks
    }
}
