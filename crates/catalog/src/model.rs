//! A model on sale: the fields of the public record, its book of prices, and the routes that serve
//! it.

use std::sync::Arc;
use std::time::Duration;

use crate::form::did_you_mean;
use crate::{
    BillingUnit, Book, ChatRules, DatedPrices, EmbeddingTable, ImageTable, LineInFile, Mistake, MusicTable, NoPrice,
    Price, PriceFacts, RouteCost, SpeechTable, TranscriptionTable, VendorList, VideoTable,
};

/// One model. Built by [`crate::load`] only, so whatever exists has been checked and has prices.
#[derive(Clone, Debug)]
pub struct Model {
    /// The public name, the value of `model` in requests.
    pub name: String,
    pub description: String,
    /// One of [`crate::MODEL_TYPES`].
    pub kind: String,
    pub context_window: Option<u64>,
    pub max_input_tokens: Option<u64>,
    pub max_output_tokens: Option<u64>,
    pub input_modalities: Vec<String>,
    pub output_modalities: Vec<String>,
    pub reasoning_efforts: Vec<String>,
    pub resolutions: Vec<String>,
    pub max_duration_seconds: Option<u64>,
    pub pricing_notes: Option<String>,
    pub login_required: bool,
    pub icon: Option<String>,
    pub tags: Vec<String>,
    /// The table of who makes it.
    pub vendor: Option<String>,
    /// The number of who makes it, where that has no table.
    pub vendor_id: Option<i64>,
    pub owner_by: Option<String>,
    /// Groups the model is sold to.
    pub enable_groups: Vec<String>,
    pub supported_endpoint_types: Vec<String>,
    pub capabilities: Vec<String>,
    pub tasks: Vec<String>,
    pub billing_unit: BillingUnit,
    pub default_voice: Option<String>,
    pub default_response_format: Option<String>,
    pub speech_input: Option<String>,
    pub accepted_upload_formats: Vec<String>,
    /// Paid credit only; refused before the first top-up.
    pub requires_topup: bool,
    /// What it takes in a conversation and what it refuses.
    pub chat: ChatRules,
    /// The prices before all changes; [`Model::book_at`] has those in force.
    pub(crate) book: Book,
    /// The vendor's own prices before all changes, shown for comparison.
    pub(crate) list: Option<VendorList>,
    /// Other prices from instants on, by time.
    pub(crate) changes: Vec<DatedPrices>,
    /// Ordered by priority.
    pub routes: Vec<Route>,
    /// How its requests are read, when it makes videos.
    pub video: Option<VideoTable>,
    /// What it sells, when it makes pictures.
    pub image: ImageTable,
    /// What it speaks, when it makes speech.
    pub speech: Option<SpeechTable>,
    /// What it plays, when it makes music.
    pub music: Option<MusicTable>,
    /// Which recordings it takes and what it makes of them, when it writes them down.
    pub transcription: Option<TranscriptionTable>,
    /// What it takes at once, when it makes embeddings.
    pub embedding: EmbeddingTable,
    /// Where it is written, for messages.
    pub place: LineInFile,
}

/// A way to a provider that serves the model.
#[derive(Clone, Debug)]
pub struct Route {
    pub provider: String,
    /// The provider's name for the model.
    pub upstream_model: String,
    /// Lower is tried first.
    pub priority: u32,
    /// Share of the traffic among routes of one priority; 0 takes none of its own.
    pub weight: u32,
    /// What it costs the operator; `None`: the vendor's list price.
    pub cost: Option<RouteCost>,
    /// It is probed after so long without traffic; zero: never; `None`: as its provider says.
    pub probe_every: Option<Duration>,
    pub place: LineInFile,
}

impl Route {
    /// The mistake of a route to a provider that is not there.
    pub(crate) fn unknown_provider(&self, model: &str, known: &[&str]) -> Option<Mistake> {
        if self.provider.is_empty() || known.contains(&self.provider.as_str()) {
            return None;
        }
        let hint = did_you_mean(&self.provider, known.iter().copied());
        let field = format!("{model}.route.provider");
        Some(self.place.mistake(&field, format!("no provider is called {:?}{hint}", self.provider)))
    }
}

impl Model {
    /// Something sold by the call that is not a language model; tried at its routes in their order.
    pub(crate) fn per_call(
        name: String,
        book: Book,
        routes: impl Iterator<Item = (String, String)>,
        place: LineInFile,
    ) -> Model {
        let route = |(at, (provider, upstream_model)): (usize, (String, String))| Route {
            provider,
            upstream_model,
            priority: u32::try_from(at).unwrap_or(u32::MAX),
            weight: 1,
            cost: None,
            probe_every: None,
            place: place.clone(),
        };
        Model {
            name,
            description: String::new(),
            kind: String::new(),
            context_window: None,
            max_input_tokens: None,
            max_output_tokens: None,
            input_modalities: Vec::new(),
            output_modalities: Vec::new(),
            reasoning_efforts: Vec::new(),
            resolutions: Vec::new(),
            max_duration_seconds: None,
            pricing_notes: None,
            login_required: false,
            icon: None,
            tags: Vec::new(),
            vendor: None,
            vendor_id: None,
            owner_by: None,
            enable_groups: Vec::new(),
            supported_endpoint_types: Vec::new(),
            capabilities: Vec::new(),
            tasks: Vec::new(),
            billing_unit: BillingUnit::PerCall,
            default_voice: None,
            default_response_format: None,
            speech_input: None,
            accepted_upload_formats: Vec::new(),
            requires_topup: false,
            chat: ChatRules::default(),
            book,
            list: None,
            changes: Vec::new(),
            routes: routes.enumerate().map(route).collect(),
            video: None,
            image: ImageTable::default(),
            speech: None,
            music: None,
            transcription: None,
            embedding: EmbeddingTable::default(),
            place: place.clone(),
        }
    }

    /// The price of a call with these facts: one of the prices built when the catalog was loaded.
    pub fn price(&self, facts: &PriceFacts<'_>) -> Result<Arc<Price>, NoPrice> {
        self.book_at(facts.at_ms).price(facts)
    }

    /// The upper bound for the hold: the dearest price that can still apply at settlement.
    pub fn dearest(&self, facts: &PriceFacts<'_>) -> Result<Arc<Price>, NoPrice> {
        self.book_at(facts.at_ms).dearest(facts)
    }

    /// The first of an account's groups that the model is sold to.
    pub fn group_for<'g>(&self, groups: impl IntoIterator<Item = &'g str>) -> Option<&'g str> {
        groups.into_iter().find(|group| self.enable_groups.iter().any(|own| own == group))
    }

    /// Whether requests of this endpoint type are offered.
    pub fn supports(&self, endpoint_type: &str) -> bool {
        self.supported_endpoint_types.iter().any(|own| own == endpoint_type)
    }
}
