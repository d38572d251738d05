//! What is on sale, under which rules and at what price: models, faces, tiers, groups, and exact
//! money.
//!
//! Pure: no input or output, no clock, no dialect, no floating point. Files come in as text and
//! leave as a checked [`Snapshot`] or as the list of every [`Mistake`] in them.

#![deny(clippy::float_arithmetic, clippy::float_cmp, clippy::lossy_float_literal)]
#![cfg_attr(not(test), deny(clippy::unwrap_used))]

mod book;
mod bound;
mod chat_rules;
mod condition;
mod cost;
mod decimal;
mod diff;
mod embedding;
mod endpoint_type;
mod face;
pub mod form;
mod fraction;
mod health;
mod image;
pub mod import;
mod labels;
mod line;
mod load;
pub mod measure;
mod model;
mod money;
mod music;
mod offer;
mod price;
mod probe;
mod record;
mod schema;
mod snapshot;
pub mod social;
mod speech;
mod tidy;
mod timeline;
mod transcription;
mod unit;
mod uses;
mod vendor;
mod vendors;
mod version;
mod video;
mod why;
mod words;
mod zone;

// The tests from outside, in the executable of the unit tests: every executable more is linked
// once more.
#[cfg(test)]
extern crate self as tollgate_catalog;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;

pub use book::{Book, NoPrice, PriceFacts, Tier};
pub use bound::{ChargeBound, Unbounded};
pub use chat_rules::ChatRules;
pub use condition::Condition;
pub use cost::RouteCost;
pub use diff::{PriceChange, PriceChangeKind, diff};
pub use embedding::EmbeddingTable;
pub use endpoint_type::{ENDPOINT_TYPES, EndpointType};
pub use face::{Face, Faces, MAX_FACE, Quantities, Unit};
pub use form::{LineInFile, Mistake, Mistakes};
pub use fraction::Fraction;
pub use health::RouteHealth;
pub use image::ImageTable;
pub use labels::{CAPABILITIES, MODEL_TYPES, TASKS};
pub use line::{Line, total};
pub use load::{load, load_again, load_for};
pub use model::{Model, Route};
pub use money::{BadMoney, Money};
pub use music::{MUSIC_FORMATS, MusicTable};
pub use offer::OfferRecord;
pub use price::{Price, Uncharged};
pub use probe::probe_every;
pub use record::{CatalogRecord, ModelRecord, View};
pub use schema::record_schema;
pub use snapshot::{Group, Snapshot};
pub use speech::{SPEECH_FORMATS, SpeechTable};
pub use tidy::{TidiedFile, same_prices_from, tidied};
pub use timeline::{DatedPrices, instant};
pub use transcription::TranscriptionTable;
pub use unit::{BillingUnit, Measure};
pub use uses::Uses;
pub use vendor::VendorList;
pub use vendors::Vendor;
pub use video::VideoTable;
pub use zone::Zone;
