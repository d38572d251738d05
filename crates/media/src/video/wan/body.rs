//! The body DashScope takes, `input` and `parameters`, while it is being filled: media, size or
//! tier, length.

use super::super::length::said;
use super::super::plan::{Case, Draft, object};
use super::super::request::check_link;
use super::super::size::Size;
use super::super::{PlanBound, VideoRefusal, Warning};
use serde_json::{Map, Value, json};

/// Both families cut longer prompts without a word.
const PROMPT: usize = 5000;

/// `input` and `parameters` while they are being filled.
pub(super) struct WanBody {
    input: Map<String, Value>,
    parameters: Map<String, Value>,
    size: Option<(&'static str, String)>,
}

pub(super) fn is_a(case: &Case<'_>) -> bool {
    case.offer.variant.name().starts_with("a-")
}

impl WanBody {
    pub fn begin(case: &mut Case<'_>, prompt_needed: bool) -> Result<WanBody, VideoRefusal> {
        let mut input = case.take_object("input");
        let mut parameters = case.take_object("parameters");
        match &case.ask.prompt {
            Some(prompt) => {
                if prompt.chars().count() > PROMPT {
                    case.warnings.push(Warning::in_part(
                        "prompt",
                        format!("The provider cuts prompts after {PROMPT} characters."),
                    ));
                }
                input.insert("prompt".to_owned(), json!(prompt));
            }
            None if prompt_needed => return Err(VideoRefusal::missing("prompt", "`prompt` is required.")),
            None => {}
        }
        let size = match parameters.remove("size") {
            Some(Value::String(size)) => {
                if case.ask.size.as_ref().is_some_and(|other| *other != size) {
                    case.warn("size", "`metadata.parameters.size` was sent and counts instead.");
                }
                Some(("metadata.parameters.size", size))
            }
            _ => case.ask.size.clone().map(|size| ("size", size)),
        };
        // Their absence would mean the provider's own choice, which differs by model.
        parameters.entry("watermark").or_insert(Value::Bool(false));
        if is_a(case) {
            parameters.entry("prompt_extend").or_insert(Value::Bool(true));
        }
        Ok(WanBody { input, parameters, size })
    }

    /// Whether the media are those of `metadata.input.media`; to be asked before they are gathered.
    pub fn lists_media(&self) -> bool {
        self.input.contains_key("media")
    }

    /// The media: those of `metadata.input.media`, or the ones made of the fields beside it.
    pub fn media(&mut self, case: &mut Case<'_>, fields: &[&str], own: Vec<Value>) -> Result<&[Value], VideoRefusal> {
        match self.input.get("media") {
            Some(_) => {
                for field in fields.iter().filter(|field| case.ask.sent().any(|sent| sent == **field)) {
                    case.warnings.push(Warning::new(*field, "`metadata.input.media` was sent and replaces it."));
                }
            }
            None => {
                self.input.insert("media".to_owned(), Value::Array(own));
            }
        }
        let Some(Value::Array(media)) = self.input.get("media") else { return Ok(&[]) };
        for (at, one) in media.iter().enumerate() {
            let path = format!("metadata.input.media[{at}]");
            let Some(url) = one["url"].as_str().filter(|_| one["type"].is_string()) else {
                return Err(VideoRefusal::missing(&path, format!("`{path}` needs `type` and `url`.")));
            };
            check_link(url, &path)?;
        }
        Ok(media)
    }

    /// Sets the tier that is sent and priced; `1080P` is the provider's own default.
    pub fn fold(&mut self, case: &mut Case<'_>, send_ratio: bool) -> Result<Vec<(&'static str, String)>, VideoRefusal> {
        let mut effective = Vec::new();
        let asked = self.parameters.get("resolution").and_then(Value::as_str).map(str::to_owned);
        let folded = match &self.size {
            None => None,
            Some((param, text)) => {
                let (tier, ratio) = Size::starred(text, param)?.fold().ok_or_else(|| Size::invalid(text, param))?;
                case.sold("resolution", tier, param)?;
                effective.push(("size", text.clone()));
                if self.parameters.get("ratio").is_some_and(|named| *named != json!(ratio)) {
                    case.warn(param, "`metadata.parameters.ratio` was sent and counts instead of its aspect ratio.");
                }
                // 16:9 is what the provider makes unasked.
                if send_ratio && ratio != "16:9" {
                    self.parameters.entry("ratio").or_insert_with(|| json!(ratio));
                }
                Some(tier.to_owned())
            }
        };
        self.settle_tier(case, asked, folded, &mut effective)?;
        Ok(effective)
    }

    /// Sends the size as written, or the tier when only that was named.
    pub fn as_written(&mut self, case: &Case<'_>) -> Result<Vec<(&'static str, String)>, VideoRefusal> {
        let mut effective = Vec::new();
        let asked = self.parameters.get("resolution").and_then(Value::as_str).map(str::to_owned);
        let (param, size) = match (&self.size, &asked) {
            (Some((param, size)), _) => (*param, size.clone()),
            (None, Some(_)) => {
                self.settle_tier(case, asked, None, &mut effective)?;
                return Ok(effective);
            }
            (None, None) => ("size", Size::wide(&case.or_unasked(None, "resolution", "720P"))),
        };
        let tier = Size::starred(&size, param)?.tier();
        let tier =
            tier.ok_or_else(|| VideoRefusal::unsupported(param, format!("{size} has no price for this model.")))?;
        case.sold("resolution", tier, param)?;
        if asked.as_ref().is_some_and(|asked| asked != tier) {
            return Err(contradiction(param));
        }
        if case.offer.tier_beside_size {
            self.beside(&size, param)?;
        }
        effective.extend([("size", size.clone()), ("resolution", tier.to_owned())]);
        self.parameters.insert("size".to_owned(), json!(size));
        Ok(effective)
    }

    /// Says the same a second time, as tier and ratio, for a server that does not read sizes and
    /// would make its largest tier.
    fn beside(&mut self, size: &str, param: &str) -> Result<(), VideoRefusal> {
        let row = Size::starred(size, param)?.fold();
        let (tier, ratio) = row.ok_or_else(|| {
            VideoRefusal::unsupported(
                param,
                format!("{size} is no size of this model; it has a tier and a ratio for others."),
            )
        })?;
        self.parameters.insert("resolution".to_owned(), json!(tier));
        self.parameters.entry("ratio").or_insert_with(|| json!(ratio));
        Ok(())
    }

    fn settle_tier(
        &mut self,
        case: &Case<'_>,
        asked: Option<String>,
        folded: Option<String>,
        effective: &mut Vec<(&'static str, String)>,
    ) -> Result<(), VideoRefusal> {
        if let (Some(asked), Some(folded)) = (&asked, &folded)
            && asked != folded
        {
            return Err(contradiction(self.size.as_ref().map_or("size", |(param, _)| *param)));
        }
        let tier = case.or_unasked(asked.or(folded), "resolution", "1080P");
        case.sold("resolution", &tier, "metadata.parameters.resolution")?;
        self.parameters.insert("resolution".to_owned(), json!(tier));
        effective.push(("resolution", tier));
        Ok(())
    }

    /// Where a length may stand, the first that was sent counts.
    fn lengths(&self, case: &Case<'_>) -> [(&'static str, Option<i64>); 3] {
        let inner = self.parameters.get("duration").and_then(Value::as_i64);
        let [duration, seconds] = case.top_length();
        [("metadata.parameters.duration", inner), duration, seconds]
    }

    pub fn seconds(&mut self, case: &mut Case<'_>, least: i64, most: i64, default: i64) -> Result<u32, VideoRefusal> {
        let length = case.length(&self.lengths(case), least..=most, default)?;
        self.parameters.insert("duration".to_owned(), json!(length));
        Ok(length)
    }

    /// For an edit, where zero keeps the length of the source. Where not every length of a source
    /// is sold, a length is sent.
    pub fn edit_seconds(&mut self, case: &mut Case<'_>, source: i64) -> Result<u32, VideoRefusal> {
        let most = case.longest(source);
        match said(&self.lengths(case)) {
            Some((param, 1)) => {
                Err(VideoRefusal::invalid(param, format!("`{param}` is 1; an edit is 2 to {most} seconds long.")))
            }
            Some((param, 0)) if most < source => {
                let message = format!(
                    "`{param}` is 0, which keeps the length of the source; this model is sold with 2 to {most} seconds."
                );
                Err(VideoRefusal::unsupported(param, message))
            }
            _ if most < source => self.seconds(case, case.shortest(), source, most),
            _ => self.seconds(case, 0, source, 0),
        }
    }

    pub fn finish(self, mut effective: Vec<(&'static str, String)>, seconds: Option<u32>, most: u32) -> Draft {
        if let Some(ratio) = self.parameters.get("ratio").and_then(Value::as_str) {
            effective.push(("ratio", ratio.to_owned()));
        }
        // Both families make sound with every video.
        effective.push(("audio", "true".to_owned()));
        Draft {
            call: "video-synthesis",
            body: object([("input", Value::Object(self.input)), ("parameters", Value::Object(self.parameters))]),
            effective,
            seconds,
            bound: PlanBound { seconds: most, tokens: None },
            ..Draft::default()
        }
    }
}

fn contradiction(size: &str) -> VideoRefusal {
    let message = format!("`{size}` and `metadata.parameters.resolution` name different tiers; send one of them.");
    VideoRefusal::invalid("metadata.parameters.resolution", message)
}
