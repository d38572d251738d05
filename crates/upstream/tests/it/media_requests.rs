//! What each provider that is known by name is sent for pictures, speech, transcripts, songs,
//! videos and sessions, against the table of documented requests (`media_requests.golden`).

use super::providers::{KEYS, provider};
use super::video::makers::MAKERS;
use bytes::Bytes;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tollgate_media::audio::{AudioCodec, Container, Length, Measured};
use tollgate_media::image::{ImagePlan, ImageRequest, ImageRules, PictureFormat};
use tollgate_media::music::SettledSong;
use tollgate_media::realtime::GeminiUsage;
use tollgate_media::speech::{SettledSpeech, SpeechFormat, SpeechVoice};
use tollgate_media::transcription::TranscriptionRequest;
use tollgate_media::video::{Offer, Variant, VideoRequest, plan};
use tollgate_upstream::transcription::TranscriptionAsk;
use tollgate_upstream::video::{Asking, Job};
use tollgate_upstream::{
    Ability, BaseUrl, Client, ClientSettings, ImageJob, MusicAsk, Outgoing, Payload, Provider, ProviderSettings,
    RealtimeAsk, SpeechAsk, SpooledFile, kind, presets,
};

const GOLDEN: &str = include_str!("media_requests.golden");
/// 2026-01-01: signed keys begin and end.
const NOW: i64 = 1_767_225_600;

fn picture(provider: &Provider) -> Outgoing {
    let asked = ImageRequest::from_json(br#"{"model":"m","prompt":"a","size":"1024x1024"}"#, false).expect("a request");
    let rules = ImageRules {
        most: 4,
        default_size: None,
        sizes: Vec::new(),
        default_quality: None,
        qualities: Vec::new(),
        format: PictureFormat::Url,
        base64_only: false,
        links: true,
        partials: false,
        sources: 1,
        masks: true,
        prompt: 1_000,
        one_price: Vec::new(),
        tiers: Vec::new(),
    };
    let plan = ImagePlan::new(asked, &rules).expect("a plan");
    let job = ImageJob {
        plan: &plan,
        model: "m",
        api: "",
        files: &[],
        sends_format: false,
        streams: false,
        n: 1,
        external_id: "call_1",
        drawn: [0; 16],
    };
    provider.kind.image.expect("pictures").create(&Asking { provider, now: NOW }, &job).expect("a request")
}

fn speech(provider: &Provider) -> Outgoing {
    let maker = provider.kind.speech.expect("speech");
    let made = [SpeechFormat::Mp3, SpeechFormat::Wav, SpeechFormat::Pcm].into_iter().find(|one| maker.makes(*one));
    let made = made.expect("a format");
    let speech = SettledSpeech {
        text: "a".to_owned(),
        voice: SpeechVoice::Named("v".to_owned()),
        format: made,
        speed: None,
        instructions: None,
        events: false,
        extra: serde_json::Map::new(),
        dropped: Vec::new(),
    };
    let ask = SpeechAsk { speech: &speech, made, rate: 24_000, model: "m", call_id: "call_1" };
    maker.request(provider, &ask).expect("a request")
}

fn song(provider: &Provider) -> Outgoing {
    let song = SettledSong {
        prompt: Some("a".to_owned()),
        lyrics: None,
        instrumental: false,
        writes_lyrics: false,
        seconds: Some(30),
        format: SpeechFormat::Mp3,
        link: false,
    };
    let ask = MusicAsk { song: &song, model: "m", call_id: "call_1" };
    provider.kind.music.expect("music").request(provider, &ask).expect("a request")
}

fn transcript(provider: &Provider) -> Outgoing {
    let request = TranscriptionRequest::read([("model", "m"), ("language", "en")].into_iter(), false);
    let request = request.expect("a request");
    let file = SpooledFile::in_memory(Bytes::from_static(b"RIFF"));
    let codec = AudioCodec::Pcm { bits: 16, float: false };
    let measured = Measured { container: Container::Wav, codec, length: Length::ZERO, video: false };
    let (file, measured) = (&file, &measured);
    let ask = TranscriptionAsk {
        call_id: "call_1",
        model: "m",
        request: &request,
        file: Some(file),
        measured,
        stream: false,
        drawn: [0; 16],
    };
    provider.kind.transcription.expect("transcripts").request(provider, &ask).expect("a request")
}

fn session(provider: &Provider) -> Outgoing {
    let ask = RealtimeAsk {
        model: "m",
        call_id: "call_1",
        transcription: false,
        live_usage: GeminiUsage::EachResponse,
        api_version: None,
    };
    provider.realtime(&ask, "nonce").expect("a request")
}

/// One for each of the provider's interfaces.
fn videos(provider: &Provider) -> Vec<(String, Outgoing)> {
    let maker = provider.kind.video.expect("videos");
    let asking = Asking { provider, now: NOW };
    let own = MAKERS.iter().filter(|row| maker.speaks(row.api));
    own.map(|row| {
        let mut fields = row.plain("a");
        fields["model"] = json!("m");
        let request = VideoRequest::from_json(fields.to_string().as_bytes()).expect("a request");
        let plan = plan(&request, &Offer::of(Variant::named(row.variant).expect("a variant"))).expect("a plan");
        let job = Job { plan: &plan, model: row.model, external_id: "task_1" };
        (format!("video {}", row.model), maker.create(&asking, &job).expect("a request"))
    })
    .collect()
}

/// The body as it goes over the wire.
async fn body(mut request: Outgoing) -> String {
    if let Payload::Whole(body) = request.body() {
        return String::from_utf8(body.to_vec()).expect("text");
    }
    let length = usize::try_from(request.body().length().expect("a length")).expect("small");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base = format!("http://{}/", listener.local_addr().expect("an address"));
    let base = BaseUrl::parse(&base).expect("an address");
    let here = Provider::new("here", kind("openai").expect("a kind"), base, None, ProviderSettings::default());
    let here = here.expect("a provider");
    *request.uri_mut() = here.base_url.join("/x").expect("an address");
    let client = Client::new(ClientSettings::default());
    let reads = async {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("a head"));
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.expect("a body");
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.expect("answered");
        String::from_utf8(body).expect("text")
    };
    let (reply, body) = tokio::join!(client.send(&here, request), reads);
    assert_eq!(reply.expect("a reply").status(), 200);
    body.replace("tollgate-00000000000000000000000000000000", "BOUNDARY").replace("\r\n", "\\r\\n")
}

/// Method, address, how the key travels, the type of the body where it is not JSON, the body.
async fn line(id: &str, what: &str, request: Outgoing) -> String {
    let header = |name: &str| request.headers().get(name).map(|value| value.to_str().expect("text").to_owned());
    let keys = KEYS.iter().filter_map(|name| Some(format!("{name}: {}", header(name)?)));
    let others = ["x-dashscope-async", "upgrade", "openai-beta"];
    let others = others.iter().filter_map(|name| Some(format!("{name}: {}", header(name)?)));
    let form = header("content-type").filter(|kind| kind.starts_with("multipart/form-data")).map(|_| "form".to_owned());
    let headers: Vec<String> = keys.chain(others).chain(form).collect();
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let line = format!("{id} {what} | {method} {uri} | {} | {}", headers.join("; "), body(request).await);
    line.trim_end().to_owned() + "\n"
}

#[tokio::test]
async fn every_row_is_sent_what_its_provider_documents() {
    let mut all = String::new();
    for row in presets() {
        let provider = provider(row);
        for ability in row.endpoints() {
            let requests = match ability {
                Ability::Image => vec![("images".to_owned(), picture(&provider))],
                Ability::Speech => vec![("speech".to_owned(), speech(&provider))],
                Ability::Transcription => vec![("transcription".to_owned(), transcript(&provider))],
                Ability::Music => vec![("music".to_owned(), song(&provider))],
                Ability::Realtime => vec![("realtime".to_owned(), session(&provider))],
                Ability::Video => videos(&provider),
                _ => Vec::new(),
            };
            for (what, request) in requests {
                all += &line(&row.id, &what, request).await;
            }
        }
    }
    for (ours, documented) in all.lines().zip(GOLDEN.lines()) {
        assert_eq!(ours, documented);
    }
    assert_eq!(all.lines().count(), GOLDEN.lines().count(), "GOLDEN BEGINS\n{all}GOLDEN ENDS");
}
