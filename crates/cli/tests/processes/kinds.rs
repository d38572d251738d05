//! The kinds of calls in the mixed load, as data: under which name they are counted, what each asks
//! for, and in which manner. A tag in what is asked tells the provider's record of one call from
//! all others.

use crate::house::{Plan, chat};
use crate::media;
use crate::tasks;
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use std::sync::LazyLock;
use std::time::Duration;

/// What the account of a mixed load is given: thousands of videos.
pub const USD: &str = "100000";
/// One call that brings social data, in nano-USD.
pub const SOCIAL: i64 = 2_000_000;

/// Songs have a maker of their own. So have pictures that are tasks, and those that are asked for
/// again under their key: one that was too slow is not begun again, so that there is time enough,
/// also on a busy machine.
const MAKERS: &str = r#"
[provider.minimax]
kind = "minimax"
base_url = "{sim}/video/minimax"
secret_env = "SIM_SECRET"
first_byte_time = "2s"
idle_time = "2s"
[provider.painter]
kind = "kling"
base_url = "{sim}/video/kling"
access_file = "../access.key"
secret_file = "../secret.key"
first_byte_time = "120s"
idle_time = "120s"
poll_every = "500ms"
requests_per_second = 1000
[provider.artist]
kind = "openai"
base_url = "{sim}/v1"
secret_env = "SIM_SECRET"
first_byte_time = "120s"
idle_time = "120s"
"#;

/// Nothing stands in the way of social data but what happens to the gateways.
const OPEN: &str = "requests_per_second = 0\n[social]\nauto_pause = false\nno_results_per_hour = 1_000_000\n";

/// Nano-USD for a picture, a token of a text, a character that is spoken, a recording and a song.
pub const PICTURE: i64 = 40_000_000;
pub const TOKEN: i64 = 1_000;
pub const CHARACTER: i64 = 15_000;
pub const RECORDING: i64 = 2 * 6_000_000;
pub const SONG: i64 = 30_000_000;

/// A house where every kind is on sale.
pub fn plan<'a>() -> Plan<'a> {
    Plan { usd: USD, top: tasks::TASKS, catalog: &CATALOG, limits: MAKERS, social: OPEN, ..Plan::default() }
}

/// Pictures that their maker begins as tasks, pictures that may take long, and pictures that are
/// changed; orders of documents and decisions, which cost what is read.
const MORE: &str = r#"
[model."painted"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { time = "120s" }
route = [{ provider = "painter", upstream_model = "kling-v2-1" }]

[model."drawn"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { base64_only = true }
route = [{ provider = "artist", upstream_model = "sim-image-new" }]

[model."retouched"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { base64_only = true, edit_images = 1 }
route = [{ provider = "artist", upstream_model = "sim-image-new" }]

[model."rank"]
type = "rerank"
supported_endpoint_types = ["jina-rerank"]
price = { input = 1_000_000, output = 0 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]

[model."judge"]
type = "decision"
supported_endpoint_types = ["system-one"]
price = { input = 1_000_000, output = 0 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
"#;

/// The smallest picture that opens.
const PIXEL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

static CATALOG: LazyLock<String> = LazyLock::new(|| [tasks::CATALOG, media::CATALOG, MORE].concat());

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Whole,
    Stream,
    SlowStream,
    Tools,
    ServerError,
    BadRequest,
    Cut,
    Leaver,
    LeaverBilledOn,
    Hang,
    LeftHanging,
    KeyedWhole,
    KeyedStream,
    Video,
    VideoFails,
    VideoRefused,
    /// The provider takes its time to answer: the time in which nobody but it knows the task.
    VideoSlow,
    /// The provider has it, and its answer never came.
    VideoLost,
    /// It was lost on its way to the provider.
    VideoVanished,
    KeyedVideo,
    KeyedVideoSlow,
    KeyedVideoFails,
    Social,
    SocialEmpty,
    SocialError,
    SocialLeaver,
    KeyedSocial,
    KeyedSocialSlow,
    Picture,
    /// Large enough to pass.
    LargePicture,
    KeyedPicture,
    Edit,
    KeyedEdit,
    /// Its maker begins it as a task.
    Painted,
    PaintedLost,
    KeyedPainted,
    Vectors,
    Speech,
    SpeechCut,
    SpeechLeaver,
    Recording,
    RecordingFails,
    KeyedRecording,
    Song,
    SongCut,
    Order,
    OrderCut,
    KeyedOrder,
    Decision,
    KeyedDecision,
}

pub const MIX: [Kind; 55] = [
    Kind::Whole,
    Kind::Picture,
    Kind::Song,
    Kind::Painted,
    Kind::SlowStream,
    Kind::KeyedRecording,
    Kind::Speech,
    Kind::KeyedVideo,
    Kind::Order,
    Kind::KeyedEdit,
    Kind::Stream,
    Kind::Leaver,
    Kind::KeyedSocial,
    Kind::KeyedWhole,
    Kind::Video,
    Kind::KeyedPainted,
    Kind::SlowStream,
    Kind::KeyedPicture,
    Kind::KeyedStream,
    Kind::Recording,
    Kind::KeyedDecision,
    Kind::Vectors,
    Kind::Social,
    Kind::VideoSlow,
    Kind::Tools,
    Kind::VideoVanished,
    Kind::SocialLeaver,
    Kind::Whole,
    Kind::KeyedVideoSlow,
    Kind::ServerError,
    Kind::SpeechLeaver,
    Kind::PaintedLost,
    Kind::LargePicture,
    Kind::SocialEmpty,
    Kind::LeaverBilledOn,
    Kind::VideoFails,
    Kind::LeftHanging,
    Kind::OrderCut,
    Kind::Edit,
    Kind::KeyedSocialSlow,
    Kind::KeyedWhole,
    Kind::VideoLost,
    Kind::Cut,
    Kind::KeyedStream,
    Kind::SocialError,
    Kind::KeyedVideoFails,
    Kind::Stream,
    Kind::VideoRefused,
    Kind::SpeechCut,
    Kind::KeyedOrder,
    Kind::Decision,
    Kind::RecordingFails,
    Kind::SongCut,
    Kind::BadRequest,
    Kind::Hang,
];

/// How a client behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Once,
    /// Reads so many pieces of a stream.
    LeavesAfter(usize),
    /// Waits so long for the first byte.
    LeavesIn(Duration),
    /// Asks again with the same Idempotency-Key until there is an answer, and then once more.
    Persists,
}

/// What is asked for; the text is the simulator's marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    Chat(&'static str, &'static str),
    Stream(&'static str, &'static str),
    Video(&'static str),
    /// `GET /v1/social/zhihu/user`.
    Social(&'static str),
    /// The cell of comments as a tool, because an Idempotency-Key goes with a POST.
    Tool(&'static str),
    Picture(&'static str, &'static str),
    Edit(&'static str),
    Vectors,
    Speech(&'static str),
    Recording(&'static str),
    Song(&'static str),
    Order(&'static str),
    Decision(&'static str),
}

const SOON: Duration = Duration::from_millis(150);

impl Kind {
    /// The table.
    fn row(self) -> (&'static str, Ask, Manner) {
        use Ask::{
            Chat, Decision, Edit, Order, Picture, Recording, Social, Song, Speech, Stream, Tool, Vectors, Video,
        };
        use Manner::{LeavesAfter, LeavesIn, Once, Persists};
        match self {
            Kind::Whole => ("chat", Chat("plain", "tokens=5"), Once),
            Kind::Stream => ("chat", Stream("plain", "tokens=6"), Once),
            Kind::SlowStream => ("chat", Stream("plain", "tokens=12 think_ms=20 delay_ms=25"), Once),
            Kind::Tools => ("chat", Stream("plain", "tools"), Once),
            Kind::ServerError => ("chat", Chat("plain", "error500"), Once),
            Kind::BadRequest => ("chat", Stream("plain", "error400"), Once),
            Kind::Cut => ("chat", Stream("plain", "cut_midstream after=3 cut=reset delay_ms=10"), Once),
            Kind::Leaver => ("chat", Stream("plain", "tokens=40 delay_ms=20"), LeavesAfter(3)),
            Kind::LeaverBilledOn => ("chat", Stream("billed-to-the-end", "tokens=15 delay_ms=20"), LeavesAfter(3)),
            Kind::Hang => ("chat", Chat("plain", "hang"), Once),
            Kind::LeftHanging => ("chat", Chat("plain", "hang"), LeavesIn(SOON)),
            Kind::KeyedWhole => ("keyed chat", Chat("plain", "tokens=5 think_ms=40"), Persists),
            Kind::KeyedStream => ("keyed stream", Stream("plain", "tokens=10 think_ms=20 delay_ms=25"), Persists),
            Kind::Video => ("video", Video("ok queue=0 run=1"), Once),
            Kind::VideoFails => ("video", Video("fail queue=0 run=0"), Once),
            Kind::VideoRefused => ("video", Video("refuse"), Once),
            Kind::VideoSlow => ("video", Video("slow ms=200 queue=0 run=0"), Once),
            Kind::VideoLost => ("video", Video("lost queue=0 run=0"), Once),
            Kind::VideoVanished => ("video", Video("vanished_once"), Once),
            Kind::KeyedVideo => ("keyed video", Video("ok queue=1 run=0"), Persists),
            Kind::KeyedVideoSlow => ("keyed video", Video("slow ms=200 queue=0 run=0"), Persists),
            Kind::KeyedVideoFails => ("keyed video", Video("fail queue=0 run=0"), Persists),
            Kind::Social => ("social", Social("plain"), Once),
            Kind::SocialEmpty => ("social", Social("empty"), Once),
            Kind::SocialError => ("social", Social("error500"), Once),
            Kind::SocialLeaver => ("social", Social("slow+think_ms=400"), LeavesIn(SOON)),
            Kind::KeyedSocial => ("keyed social", Tool("plain"), Persists),
            Kind::KeyedSocialSlow => ("keyed social", Tool("slow+think_ms=200"), Persists),
            Kind::Picture => ("picture", Picture("pictures", "ok"), Once),
            Kind::LargePicture => ("picture", Picture("pictures", "kb=2000"), Once),
            Kind::KeyedPicture => ("keyed picture", Picture("drawn", "ok"), Persists),
            Kind::Edit => ("edit", Edit("ok"), Once),
            Kind::KeyedEdit => ("keyed edit", Edit("ok"), Persists),
            Kind::Painted => ("painted picture", Picture("painted", "ok"), Once),
            Kind::PaintedLost => ("painted picture", Picture("painted", "lost"), Once),
            Kind::KeyedPainted => ("keyed painted picture", Picture("painted", "ok"), Persists),
            Kind::Vectors => ("vectors", Vectors, Once),
            Kind::Speech => ("speech", Speech("ms=3000"), Once),
            Kind::SpeechCut => ("speech", Speech("cut ms=3000"), Once),
            Kind::SpeechLeaver => ("speech", Speech("hang_midway ms=3000"), LeavesAfter(1)),
            Kind::Recording => ("recording", Recording("plain"), Once),
            Kind::RecordingFails => ("recording", Recording("error500"), Once),
            Kind::KeyedRecording => ("keyed recording", Recording("plain think_ms=40"), Persists),
            Kind::Song => ("song", Song("ms=3000"), Once),
            Kind::SongCut => ("song", Song("cut ms=3000"), Once),
            Kind::Order => ("order", Order("plain"), Once),
            Kind::OrderCut => ("order", Order("cut_midstream"), Once),
            Kind::KeyedOrder => ("keyed order", Order("plain think_ms=40"), Persists),
            Kind::Decision => ("decision", Decision("plain"), Once),
            Kind::KeyedDecision => ("keyed decision", Decision("plain think_ms=40"), Persists),
        }
    }

    /// The name under which it is counted.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    pub fn manner(self) -> Manner {
        self.row().2
    }

    pub fn persists(self) -> bool {
        self.manner() == Manner::Persists
    }

    pub fn is_video(self) -> bool {
        matches!(self.row().1, Ask::Video(_))
    }

    pub fn is_social(self) -> bool {
        matches!(self.row().1, Ask::Social(_) | Ask::Tool(_))
    }

    /// All that costs everything or nothing: no conversation, no video, no social data.
    pub fn is_media(self) -> bool {
        !matches!(self.row().1, Ask::Chat(..) | Ask::Stream(..) | Ask::Video(_) | Ask::Social(_) | Ask::Tool(_))
    }

    /// What was begun is not begun again, also when its gateway died: its key says so for good.
    pub fn is_begun_once(self) -> bool {
        matches!(self.row().1, Ask::Picture(..) | Ask::Edit(_) | Ask::Song(_))
    }

    /// The request at a gateway, without its key.
    pub fn request(self, http: &reqwest::Client, gate: &str, tag: &str) -> RequestBuilder {
        let marked = |marker: &str| format!("[[sim:{marker}]] {tag}");
        match self.row().1 {
            Ask::Chat(model, marker) => {
                http.post(format!("{gate}/v1/chat/completions")).json(&self.conversation(model, &marked(marker), false))
            }
            Ask::Stream(model, marker) => {
                http.post(format!("{gate}/v1/chat/completions")).json(&self.conversation(model, &marked(marker), true))
            }
            Ask::Video(marker) => {
                let body = json!({ "model": "kling-v3", "prompt": marked(marker) });
                http.post(format!("{gate}/v1/videos")).json(&body)
            }
            Ask::Social(marker) => {
                http.get(format!("{gate}/v1/social/zhihu/user?user_url_token=%5B%5Bsim:{marker}%5D%5D{tag}"))
            }
            Ask::Picture(model, marker) => {
                let body = json!({ "model": model, "prompt": marked(marker) });
                http.post(format!("{gate}/v1/images/generations")).json(&body)
            }
            Ask::Edit(marker) => {
                let images = json!([{ "image_url": PIXEL }]);
                let body = json!({ "model": "retouched", "prompt": marked(marker), "images": images });
                http.post(format!("{gate}/v1/images/edits")).json(&body)
            }
            Ask::Order(marker) => {
                let documents = json!(["a green apple", "a red apple"]);
                let body = json!({ "model": "rank", "query": marked(marker), "documents": documents });
                http.post(format!("{gate}/v1/rerank")).json(&body)
            }
            Ask::Decision(marker) => {
                let questions = json!([{ "type": "predicate", "instructions": "Is it red?" }]);
                let body = json!({ "model": "judge", "input": marked(marker), "questions": questions });
                http.post(format!("{gate}/v1/decisions")).json(&body)
            }
            Ask::Vectors => {
                http.post(format!("{gate}/v1/embeddings")).json(&json!({ "model": "vectors", "input": tag }))
            }
            Ask::Speech(marker) => {
                let body = json!({ "model": "voice", "input": marked(marker), "voice": "v" });
                http.post(format!("{gate}/v1/audio/speech")).json(&body)
            }
            Ask::Recording(marker) => {
                let fields = json!({ "model": "ears", "prompt": marked(marker) });
                let request = http.post(format!("{gate}/v1/audio/transcriptions")).header("content-type", media::FORM);
                request.body(media::form(&fields, &media::wav(2)))
            }
            Ask::Song(marker) => {
                let body = json!({ "model": "songs", "prompt": marked(marker), "instrumental": true });
                http.post(format!("{gate}/v1/music/generations")).json(&body)
            }
            Ask::Tool(marker) => {
                let params = json!({ "name": "social-zhihu-comments", "arguments": { "answer_id": marked(marker) } });
                let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
                http.post(format!("{gate}/mcp")).json(&body)
            }
        }
    }

    fn conversation(self, model: &str, prompt: &str, streams: bool) -> Value {
        let mut body = chat(model, prompt);
        body["max_tokens"] = json!(50);
        if streams {
            body["stream"] = json!(true);
        }
        if self == Kind::SlowStream {
            body["stream_options"] = json!({ "include_usage": true });
        }
        if self == Kind::Tools {
            let parameters = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
            body["tools"] =
                json!([{ "type": "function", "function": { "name": "weather", "parameters": parameters } }]);
        }
        body
    }
}

/// The tag in a text that a provider was sent.
pub fn tag_of(text: &str) -> Option<&str> {
    let at = text.rfind("tag")?;
    let digits = text[at + 3..].bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| &text[at..at + 3 + digits])
}
