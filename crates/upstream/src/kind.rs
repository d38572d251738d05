//! Every kind of provider, one row each: the word for it in the configuration, and what it can do.
//!
//! An ability that a kind does not have is `None`, and nobody can ask for it. Settings,
//! `tollgate check` and dispatch read the same row. A new ability is one more field here; a new
//! kind is one more row.

use crate::makers::{
    Anthropic, Ark, AzureChat, AzureEmbeddings, CohereEmbeddings, CohereRerank, Converse, DashScope,
    DashScopeRecognition, DashScopeSpeech, ElevenLabsMusic, ElevenLabsSpeech, GeminiChat, GeminiEmbeddings,
    GeminiImages, GeminiLive, GeminiSpeech, JinaRerank, Kling, KlingImages, MiniMax, MiniMaxImages, MiniMaxMusic,
    MiniMaxSpeech, OpenAiChat, OpenAiEmbeddings, OpenAiImages, OpenAiRealtime, OpenAiSpeech, OpenAiTranscriber,
    QwenImages, QwenRealtime, Scribe, Seedream, Sora, TikHub, Veo, VertexAnthropic, VertexEmbeddings, VertexGemini,
    VertexOpenAi,
};
use crate::signing::Signing;
use crate::transcription::Transcriber;
use crate::video::VideoMaker;
use crate::{Chat, Decides, Embeddings, ImageMaker, MusicMaker, Realtime, Rerank, SocialData, SpeechMaker};
use std::fmt;
use tollgate_media::decide::DecisionForm;
use tollgate_wire::Dialect;

/// One way to speak to providers.
#[derive(Debug)]
pub struct ProviderKind {
    /// The word for it in the configuration.
    pub name: &'static str,
    /// Its key may be a pair, an access key and a secret, joined by `|`.
    pub key_pair: bool,
    /// The header of its key; absent: `Authorization: Bearer`, or what its makers do.
    pub key_header: Option<&'static str>,
    /// What it takes in the place of a plain key.
    pub signing: Signing,
    pub chat: Option<&'static dyn Chat>,
    pub video: Option<&'static dyn VideoMaker>,
    pub social: Option<&'static dyn SocialData>,
    pub image: Option<&'static dyn ImageMaker>,
    pub speech: Option<&'static dyn SpeechMaker>,
    pub transcription: Option<&'static dyn Transcriber>,
    pub music: Option<&'static dyn MusicMaker>,
    pub embeddings: Option<&'static dyn Embeddings>,
    pub rerank: Option<&'static dyn Rerank>,
    pub decides: Option<Decides>,
    pub realtime: Option<&'static dyn Realtime>,
}

/// Something that a kind of provider can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ability {
    Chat,
    Video,
    Social,
    Image,
    Speech,
    Transcription,
    Music,
    Embeddings,
    Rerank,
    Decisions,
    Realtime,
}

/// Every kind of provider there is.
pub static KINDS: &[ProviderKind] = &[
    ProviderKind {
        chat: Some(&OpenAiChat { dialect: Dialect::Chat, path: "/chat/completions" }),
        video: Some(&Sora),
        speech: Some(&OpenAiSpeech),
        transcription: Some(&OpenAiTranscriber),
        image: Some(&OpenAiImages),
        embeddings: Some(&OpenAiEmbeddings::OWN),
        rerank: Some(&JinaRerank),
        decides: Some(Decides { form: DecisionForm::Decisions, path: "/decisions" }),
        realtime: Some(&OpenAiRealtime),
        ..ProviderKind::named("openai")
    },
    ProviderKind {
        chat: Some(&OpenAiChat { dialect: Dialect::Responses, path: "/responses" }),
        ..ProviderKind::named("openai-responses")
    },
    ProviderKind { chat: Some(&Anthropic), ..ProviderKind::named("anthropic") },
    ProviderKind {
        chat: Some(&GeminiChat),
        video: Some(&Veo),
        speech: Some(&GeminiSpeech),
        image: Some(&GeminiImages::OWN),
        embeddings: Some(&GeminiEmbeddings),
        realtime: Some(&GeminiLive),
        ..ProviderKind::named("gemini")
    },
    ProviderKind { social: Some(&TikHub), ..ProviderKind::named("tikhub") },
    // A source that one runs oneself, with the routes and answers of the supplier.
    ProviderKind { social: Some(&TikHub), ..ProviderKind::named("social-source") },
    ProviderKind {
        chat: Some(&OpenAiChat { dialect: Dialect::Chat, path: "/compatible-mode/v1/chat/completions" }),
        video: Some(&DashScope),
        speech: Some(&DashScopeSpeech),
        transcription: Some(&DashScopeRecognition),
        image: Some(&QwenImages),
        embeddings: Some(&OpenAiEmbeddings { path: "/compatible-mode/v1/embeddings", most: 10, packs: false }),
        realtime: Some(&QwenRealtime),
        ..ProviderKind::named("dashscope")
    },
    ProviderKind {
        chat: Some(&OpenAiChat { dialect: Dialect::Chat, path: "/chat/completions" }),
        video: Some(&Ark),
        image: Some(&Seedream),
        embeddings: Some(&OpenAiEmbeddings::OWN),
        ..ProviderKind::named("ark")
    },
    ProviderKind { key_pair: true, video: Some(&Kling), image: Some(&KlingImages), ..ProviderKind::named("kling") },
    ProviderKind {
        chat: Some(&OpenAiChat { dialect: Dialect::Chat, path: "/v1/chat/completions" }),
        video: Some(&MiniMax),
        speech: Some(&MiniMaxSpeech),
        music: Some(&MiniMaxMusic),
        image: Some(&MiniMaxImages),
        ..ProviderKind::named("minimax")
    },
    ProviderKind {
        speech: Some(&ElevenLabsSpeech),
        transcription: Some(&Scribe),
        music: Some(&ElevenLabsMusic),
        ..ProviderKind::named("elevenlabs")
    },
    ProviderKind { embeddings: Some(&CohereEmbeddings), rerank: Some(&CohereRerank), ..ProviderKind::named("cohere") },
    ProviderKind {
        embeddings: Some(&OpenAiEmbeddings { packs: false, ..OpenAiEmbeddings::OWN }),
        rerank: Some(&JinaRerank),
        ..ProviderKind::named("jina")
    },
    ProviderKind {
        key_header: Some("api-key"),
        chat: Some(&AzureChat { dialect: Dialect::Chat, path: "/chat/completions" }),
        video: Some(&Sora),
        speech: Some(&OpenAiSpeech),
        transcription: Some(&OpenAiTranscriber),
        image: Some(&OpenAiImages),
        embeddings: Some(&AzureEmbeddings),
        realtime: Some(&OpenAiRealtime),
        ..ProviderKind::named("azure")
    },
    ProviderKind {
        key_header: Some("api-key"),
        chat: Some(&AzureChat { dialect: Dialect::Responses, path: "/responses" }),
        ..ProviderKind::named("azure-responses")
    },
    ProviderKind {
        signing: Signing::ServiceAccount,
        chat: Some(&VertexGemini),
        image: Some(&GeminiImages::VERTEX),
        embeddings: Some(&VertexEmbeddings),
        ..ProviderKind::named("vertex-gemini")
    },
    ProviderKind {
        signing: Signing::ServiceAccount,
        chat: Some(&VertexAnthropic),
        ..ProviderKind::named("vertex-anthropic")
    },
    ProviderKind {
        signing: Signing::ServiceAccount,
        chat: Some(&VertexOpenAi),
        ..ProviderKind::named("vertex-openai")
    },
    ProviderKind {
        key_pair: true,
        signing: Signing::SigV4 { service: "bedrock" },
        chat: Some(&Converse),
        ..ProviderKind::named("bedrock")
    },
    ProviderKind {
        decides: Some(Decides { form: DecisionForm::SystemOne, path: "/v1/systemone" }),
        ..ProviderKind::named("system-one")
    },
];

/// The kind with this name.
pub fn kind(name: &str) -> Option<&'static ProviderKind> {
    KINDS.iter().find(|kind| kind.name == name)
}

impl ProviderKind {
    /// A kind that can do nothing yet.
    const fn named(name: &'static str) -> ProviderKind {
        ProviderKind {
            name,
            key_pair: false,
            key_header: None,
            signing: Signing::Plain,
            chat: None,
            video: None,
            social: None,
            image: None,
            speech: None,
            transcription: None,
            music: None,
            embeddings: None,
            rerank: None,
            decides: None,
            realtime: None,
        }
    }

    /// Who writes recordings down with this model.
    pub fn transcriber(&self, upstream_model: &str) -> Option<&'static dyn Transcriber> {
        self.transcription.map(|usual| usual.of_model(upstream_model).unwrap_or(usual))
    }

    /// Who speaks with this model.
    pub fn speaker(&self, upstream_model: &str) -> Option<&'static dyn SpeechMaker> {
        self.speech.map(|usual| usual.of_model(upstream_model).unwrap_or(usual))
    }

    pub fn has(&self, ability: Ability) -> bool {
        match ability {
            Ability::Chat => self.chat.is_some(),
            Ability::Video => self.video.is_some(),
            Ability::Social => self.social.is_some(),
            Ability::Speech => self.speech.is_some(),
            Ability::Music => self.music.is_some(),
            Ability::Transcription => self.transcription.is_some(),
            Ability::Image => self.image.is_some(),
            Ability::Embeddings => self.embeddings.is_some(),
            Ability::Rerank => self.rerank.is_some(),
            Ability::Decisions => self.decides.is_some(),
            Ability::Realtime => self.realtime.is_some(),
        }
    }
}

impl Ability {
    pub const ALL: [Ability; 11] = [
        Ability::Chat,
        Ability::Video,
        Ability::Social,
        Ability::Image,
        Ability::Speech,
        Ability::Transcription,
        Ability::Music,
        Ability::Embeddings,
        Ability::Rerank,
        Ability::Decisions,
        Ability::Realtime,
    ];

    /// One word for it, in tables and on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Ability::Social => "social",
            Ability::Chat => "chat",
            Ability::Video => "video",
            Ability::Speech => "speech",
            Ability::Music => "music",
            Ability::Transcription => "transcription",
            Ability::Image => "images",
            Ability::Embeddings => "embeddings",
            Ability::Rerank => "rerank",
            Ability::Decisions => "decisions",
            Ability::Realtime => "realtime",
        }
    }

    /// What a route of a model with this endpoint type needs.
    pub fn of_endpoint_type(name: &str) -> Option<Ability> {
        Some(match name {
            "openai" | "anthropic" | "openai-response" | "gemini" => Ability::Chat,
            "openai-video" => Ability::Video,
            "image-generation" => Ability::Image,
            "audio-speech" => Ability::Speech,
            "audio-transcription" => Ability::Transcription,
            "music-generation" => Ability::Music,
            "embeddings" => Ability::Embeddings,
            "jina-rerank" => Ability::Rerank,
            "system-one" => Ability::Decisions,
            "realtime" => Ability::Realtime,
            _ => return None,
        })
    }
}

impl fmt::Display for Ability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Ability::Social { "social data" } else { self.word() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own_and_can_do_something() {
        for one in KINDS {
            assert!(Ability::ALL.iter().any(|ability| one.has(*ability)), "{}", one.name);
            assert!(std::ptr::eq(kind(one.name).expect("a kind"), one), "{} is there twice", one.name);
        }
        assert!(kind("nobody").is_none());
    }

    /// What the documentation promises (docs/adding-a-provider.md).
    #[test]
    fn what_each_kind_can_do() {
        let row = |kind: &ProviderKind| {
            let able: Vec<String> = Ability::ALL.iter().filter(|one| kind.has(**one)).map(Ability::to_string).collect();
            format!("{}: {}", kind.name, able.join(", "))
        };
        let rows: Vec<String> = KINDS.iter().map(row).collect();
        let expected = [
            "openai: chat, video, images, speech, transcription, embeddings, rerank, decisions, realtime",
            "openai-responses: chat",
            "anthropic: chat",
            "gemini: chat, video, images, speech, embeddings, realtime",
            "tikhub: social data",
            "social-source: social data",
            "dashscope: chat, video, images, speech, transcription, embeddings, realtime",
            "ark: chat, video, images, embeddings",
            "kling: video, images",
            "minimax: chat, video, images, speech, music",
            "elevenlabs: speech, transcription, music",
            "cohere: embeddings, rerank",
            "jina: embeddings, rerank",
            "azure: chat, video, images, speech, transcription, embeddings, realtime",
            "azure-responses: chat",
            "vertex-gemini: chat, images, embeddings",
            "vertex-anthropic: chat",
            "vertex-openai: chat",
            "bedrock: chat",
            "system-one: decisions",
        ];
        assert_eq!(rows, expected);
    }
}
