//! The public record of a model (specification 2.6) and the catalog made of them. Ratios are derived from the
//! faces, digit by digit: there is one definition of a price.

use serde_json::{Map, Value, json};

use crate::{Face, Faces, Fraction, Group, Model, Snapshot, Tier, Unit};

/// For whom a record is written.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The group whose multiplier is shown as `billing_rate`.
    pub group: &'a str,
    /// Whether the ratios show the prices of accounts that have topped up.
    pub topped_up: bool,
}

impl Default for View<'static> {
    fn default() -> View<'static> {
        View { group: Group::DEFAULT, topped_up: false }
    }
}

impl Snapshot {
    /// The whole catalog as `GET /api/pricing` answers it, without `route_health`, which the caller adds.
    pub fn record(&self, view: &View<'_>) -> Value {
        let data: Vec<Value> = self.models.values().map(|model| model.record(self, view)).collect();
        json!({"auto_groups": self.auto_groups, "data": data})
    }
}

impl Model {
    /// The model's record for one viewer.
    pub fn record(&self, catalog: &Snapshot, view: &View<'_>) -> Value {
        let mut record = Map::new();
        let mut put = |key: &str, value: Value| {
            let absent = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
            if !absent {
                record.insert(key.to_owned(), value);
            }
        };
        put("model_name", json!(self.name));
        put("description", json!(self.description));
        put("specs", json!(self.specs().to_string()));
        put("login_required", json!(u8::from(self.login_required)));
        put("icon", json!(self.icon));
        put("tags", json!(self.tags.join(",")));
        put("vendor_id", json!(self.vendor_id));
        put("owner_by", json!(self.owner_by));
        put("enable_groups", json!(self.enable_groups));
        put("supported_endpoint_types", json!(self.supported_endpoint_types));
        put("capabilities", json!(self.capabilities));
        put("tasks", json!(self.tasks));
        put("billing_unit", json!(self.billing_unit.name()));
        put("pricing_version", json!(catalog.pricing_version));
        put("default_voice", json!(self.default_voice));
        put("default_response_format", json!(self.default_response_format));
        put("speech_input", json!(self.speech_input));
        put("accepted_upload_formats", json!(self.accepted_upload_formats));
        let (rate, source) = match catalog.groups.get(view.group) {
            Some(group) if view.group != Group::DEFAULT => (group.multiplier, format!("group:{}", view.group)),
            Some(group) => (group.multiplier, "default".to_owned()),
            None => (Fraction::ONE, "default".to_owned()),
        };
        put("billing_rate", decimal(u128::from(rate.numerator()), u128::from(rate.denominator())));
        put("billing_rate_source", json!(source));
        for (key, value) in self.ratios(view.topped_up) {
            put(key, value);
        }
        let written = self.book.written(view.topped_up);
        put("vendor_list", json!(self.list.as_ref().map(|list| list.record(written, rate, self.billing_unit))));
        put("book_faces", self.book_faces());
        Value::Object(record)
    }

    fn specs(&self) -> Value {
        let mut specs = Map::new();
        let fields = [
            ("type", json!(self.kind)),
            ("context_window", json!(self.context_window)),
            ("max_input_tokens", json!(self.max_input_tokens)),
            ("max_output_tokens", json!(self.max_output_tokens)),
            ("input_modalities", json!(self.input_modalities)),
            ("output_modalities", json!(self.output_modalities)),
            ("reasoning_efforts", json!(self.reasoning_efforts)),
            ("resolutions", json!(self.resolutions)),
            ("max_duration_seconds", json!(self.max_duration_seconds)),
            ("pricing_notes", json!(self.pricing_notes)),
        ];
        for (key, value) in fields {
            if !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()) {
                specs.insert(key.to_owned(), value);
            }
        }
        Value::Object(specs)
    }

    /// `quota_type`, `model_ratio` (1 = 2 USD per million input tokens) and its relatives, or `model_price` (USD).
    fn ratios(&self, topped_up: bool) -> Vec<(&'static str, Value)> {
        let written = self.book.written(topped_up);
        let face = self.billing_unit.main_face();
        if face.unit() != Unit::MillionTokens {
            let price = u128::from(written.get(face).unwrap_or(0));
            return vec![
                ("quota_type", json!(1)),
                ("model_ratio", json!(0)),
                ("model_price", decimal(price, 1_000_000)),
            ];
        }
        let faces = written.completed();
        let price = |face| u128::from(faces.get(face).unwrap_or(0));
        let mut ratios = vec![
            ("quota_type", json!(0)),
            ("model_ratio", decimal(price(Face::Input), 2_000_000)),
            ("model_price", json!(0)),
        ];
        // Each ratio is relative to another face; without one there is nothing to be relative to.
        let relative = [
            ("completion_ratio", Face::Output, Face::Input),
            ("cache_ratio", Face::CacheRead, Face::Input),
            ("create_cache_ratio", Face::CacheWrite, Face::Input),
            ("image_ratio", Face::ImageInput, Face::Input),
            ("audio_ratio", Face::AudioInput, Face::Input),
            ("audio_completion_ratio", Face::AudioOutput, Face::AudioInput),
        ];
        for (name, face, base) in relative {
            if (written.has(face) || face == Face::Output) && price(base) > 0 {
                ratios.push((name, decimal(price(face), price(base))));
            }
        }
        ratios
    }

    fn book_faces(&self) -> Value {
        let book = &self.book;
        let mut record = json!({
            "standard": book.standard,
            "paid": book.paid,
            "route_count": self.routes.len(),
        });
        if !book.tiers.is_empty() {
            let mut conditions = book.tiers.iter().flat_map(|tier| &tier.when);
            record["tier_count"] = json!(book.tiers.len());
            record["has_request_condition"] = json!(conditions.clone().any(|when| when.is_about_request()));
            record["has_time_condition"] = json!(conditions.any(|when| when.is_about_time()));
            record["tiers"] = book.tiers.iter().map(tier_record).collect();
        }
        record
    }
}

fn tier_record(tier: &Tier) -> Value {
    let scaled = |faces: &Faces| {
        faces.iter().fold(Faces::NONE, |sum, (face, price)| sum.with(face, tier.multiplier.of(price).unwrap_or(price)))
    };
    let when: Vec<Value> = tier.when.iter().map(|when| when.record()).collect();
    json!({
        "tier": tier.name,
        "standard": scaled(&tier.standard),
        "paid": tier.paid.as_ref().map(scaled),
        "when": when,
    })
}

/// A quotient as a JSON number: exact when it ends within twelve decimals, else rounded there.
pub(crate) fn decimal(numerator: u128, denominator: u128) -> Value {
    const SCALE: u128 = 1_000_000_000_000;
    let scaled = (numerator * SCALE * 2 + denominator) / (denominator * 2);
    let (whole, rest) = (scaled / SCALE, scaled % SCALE);
    let text =
        if rest == 0 { whole.to_string() } else { format!("{whole}.{}", format!("{rest:012}").trim_end_matches('0')) };
    serde_json::from_str(&text).unwrap_or(Value::Null)
}
