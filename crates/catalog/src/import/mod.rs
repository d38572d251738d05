//! Prices of real models: read from the files that others publish, compared, and written as a
//! catalog.
//!
//! Text in, text out: reading and writing files is for the command line, publishing for the
//! gateway. Prices are read digit by digit, and nothing is taken over that an operator typed
//! himself.

mod agree;
mod clause;
mod digits;
mod draft;
mod draft_lists;
mod files;
mod genai;
mod glob;
mod inline;
mod json;
mod listed;
mod litellm;
mod litellm_facts;
mod litellm_tiers;
mod lock;
mod margin;
mod models_dev;
mod new_api;
mod openrouter;
mod plan;
mod shipped;
mod shipped_list;
mod source;
mod vendors;

pub use agree::{Import, ImportRequest, facts_file};
pub use digits::written_usd;
pub use draft::{BadDraft, CatalogDraft, DraftOutcome, EnableDraft};
pub use draft_lists::{ImportDraft, PriceLists, UpdateDraft};
pub use files::{CatalogEdits, CatalogFiles, is_lock};
pub use glob::Glob;
pub use listed::{ListedModel, ListedTier, SaleTerms};
pub use lock::{BadLock, ImportLock, LOCK_FILE, LockedFile, LockedModel, digest_of};
pub use margin::{BadMargin, Margin};
pub use plan::{CatalogPlan, FaceStep, ImportStop, PlanKind, PlanRequest, PlanStep, StepKind, plan};
pub use shipped::{SHIPPED_MODELS, ShippedFile, shipped, shipped_names};
pub use shipped_list::{STALE_DAYS, shipped_overview};
pub use source::{BadSource, PriceSource, SourceKind, SourceModel};
pub use vendors::{VENDORS_FILE, vendors_for};
