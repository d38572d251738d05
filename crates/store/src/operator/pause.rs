//! What is not sold for a while: models, cells of social data (each is sold as a model), and
//! providers that get nothing new. Rows are added, never changed; the newest about a thing says how
//! it is. All replicas go by them, over restarts.

use serde::{Deserialize, Serialize};

use super::{Attribution, AuditRow};

/// What is paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseKind {
    /// A model, or a cell of social data by its usage-log name.
    #[default]
    Model,
    Provider,
}

impl PauseKind {
    /// As it is written down.
    pub fn word(self) -> &'static str {
        match self {
            PauseKind::Model => "model",
            PauseKind::Provider => "provider",
        }
    }

    pub(crate) fn of(word: &str) -> PauseKind {
        if word == PauseKind::Provider.word() { PauseKind::Provider } else { PauseKind::Model }
    }
}

impl PauseChange {
    /// The row of the log about it. What the gateway pauses by itself has its row in the log of
    /// pauses alone.
    pub(crate) fn audit_row(&self) -> Option<AuditRow> {
        let done = Attribution::by(self.actor.clone(), self.reason.clone());
        let action = if self.kind == PauseKind::Provider { "pause.provider" } else { "pause.model" };
        let row = AuditRow::new(self.at, &done, action, &self.name, None).filter(|_| self.actor != "auto")?;
        Some(row.detail(if self.paused { "paused: true" } else { "paused: false" }))
    }
}

/// Something was paused or resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseChange {
    #[serde(default)]
    pub kind: PauseKind,
    pub name: String,
    pub paused: bool,
    #[serde(rename = "at_ms")]
    pub at: i64,
    /// Who: an operator's name, or `auto`.
    pub actor: String,
    pub reason: String,
}
