//! The makers of videos, one row per API: what is needed to ask each of them for a plain video.

use serde_json::{Value, json};
use tollgate_media::video::Api;

pub const PICTURE: &str = "https://media.example/640x640.png";

#[derive(Clone, Copy, Debug)]
pub struct Maker {
    pub api: Api,
    /// The kind in the configuration.
    pub kind: &'static str,
    pub variant: &'static str,
    /// The maker's own name for the model.
    pub model: &'static str,
}

pub const MAKERS: &[Maker] = &[
    Maker { api: Api::DashScope, kind: "dashscope", variant: "a-text-to-video", model: "wan2.7-t2v" },
    Maker { api: Api::Ark, kind: "ark", variant: "b-2.5", model: "doubao-seedance-2-5-260628" },
    Maker { api: Api::KlingV1, kind: "kling", variant: "c-standard", model: "kling-v3" },
    Maker { api: Api::Kling2, kind: "kling", variant: "c-value", model: "kling-3.0-turbo" },
    Maker { api: Api::KlingOmni, kind: "kling", variant: "c-multi-image", model: "kling-v3-omni" },
    Maker { api: Api::MiniMaxV1, kind: "minimax", variant: "d-legacy", model: "MiniMax-Hailuo-2.3" },
    Maker { api: Api::MiniMaxV2, kind: "minimax", variant: "d-native-audio", model: "MiniMax-H3" },
    Maker { api: Api::Sora, kind: "openai", variant: "sora", model: "sora-2" },
    Maker { api: Api::Veo, kind: "gemini", variant: "veo", model: "veo-3.1-generate-preview" },
];

impl Maker {
    pub fn of(api: Api) -> Maker {
        *MAKERS.iter().find(|maker| maker.api == api).expect("a maker")
    }

    /// The smallest request it takes.
    pub fn plain(&self, prompt: &str) -> Value {
        match self.api {
            Api::KlingOmni => json!({"prompt": prompt, "metadata": {"aspect_ratio": "16:9"}}),
            Api::MiniMaxV2 => json!({"prompt": prompt, "metadata": {"ratio": "16:9"}}),
            _ => json!({"prompt": prompt}),
        }
    }
}
