//! How a row of the tables is checked.

use serde_json::{Value, json};
use tollgate_media::video::{Offer, Plan, Variant, VideoRefusal, VideoRequest, plan};
use tollgate_wire::error::Code;

pub const PICTURE: &str = "https://media.example/a.png";
pub const OTHER: &str = "https://media.example/b.png";
pub const CLIP: &str = "https://media.example/a.mp4";

/// A request for a variant; `model` is filled in.
pub fn ask(variant: &str, mut fields: Value) -> Result<Plan, VideoRefusal> {
    fields["model"] = json!("m");
    let offer = Offer::of(Variant::named(variant).unwrap_or_else(|| panic!("no variant {variant}")));
    plan(&VideoRequest::from_json(fields.to_string().as_bytes())?, &offer)
}

/// The request is accepted: operation, body, facts (`seconds=5 bound=5 …`, all of them) and the
/// fields warned about.
#[track_caller]
pub fn accepts(says: &str, variant: &str, fields: Value, call: &str, body: Value, facts: &str, warned: &[&str]) {
    let plan = ask(variant, fields).unwrap_or_else(|refusal| panic!("{says}: {refusal:?}"));
    assert_eq!((plan.call, Value::Object(plan.body.clone())), (call, body), "{says}");
    assert_eq!(shown(&plan), facts, "{says}");
    let fields: Vec<_> = plan.warnings.iter().map(|warning| warning.field.as_str()).collect();
    assert_eq!(fields, warned, "{says}: {:?}", plan.warnings);
    assert!(plan.warnings.iter().all(|warning| !warning.message.is_empty()));
}

/// The request is refused with this code, this field and a message that contains this text.
#[track_caller]
pub fn refuses(says: &str, variant: &str, fields: Value, code: Code, param: &str, text: &str) {
    let refusal = ask(variant, fields).expect_err(says);
    assert_eq!((refusal.code, refusal.param.as_deref()), (code, Some(param)), "{says}: {}", refusal.message);
    assert!(refusal.message.contains(text), "{says}: {}", refusal.message);
}

fn shown(plan: &Plan) -> String {
    let mut facts: Vec<_> = plan
        .effective
        .iter()
        .filter(|(name, _)| *name != "model")
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    facts.push(format!("bound={}", plan.bound.seconds));
    facts.extend(plan.bound.tokens.map(|tokens| format!("tokens={tokens}")));
    facts.join(" ")
}
