//! Providers that are known by name: what each is sent, against the table of documented requests
//! (`providers.golden`), and the page about them (docs/providers.md).

use bytes::Bytes;
use tollgate_media::embed::EmbedRequest;
use tollgate_media::rerank::RerankRequest;
use tollgate_upstream::{
    Ability, BaseUrl, ChatAsk, EmbedAsk, KeyNeed, Outgoing, Payload, Preset, Provider, ProviderSettings, Secret,
    presets,
};
use tollgate_wire::Dialect;

const GOLDEN: &str = include_str!("providers.golden");
const PAGE: &str = include_str!("../../../../docs/providers.md");
/// In which headers keys travel.
pub const KEYS: [&str; 5] = ["authorization", "api-key", "x-api-key", "x-goog-api-key", "xi-api-key"];

pub fn provider(row: &Preset) -> Provider {
    let address = row.address(|name| Some(format!("my-{name}"))).expect("an address");
    let settings = ProviderSettings { quirks: row.quirks.clone(), ..ProviderSettings::default() };
    // A service account has its key exchanged at another place: without one, nothing is signed.
    let secret = (!row.kind_name.starts_with("vertex")).then(|| Secret::new("KEY"));
    Provider::new(&row.id, row.kind().expect("a kind"), BaseUrl::parse(&address).expect("valid"), secret, settings)
        .expect("a provider")
}

/// Method, address, how the key travels, version headers, body.
fn line(row: &Preset, what: &str, request: &Outgoing) -> String {
    let header = |name: &str| request.headers().get(name).map(|value| value.to_str().expect("text"));
    let keys = KEYS.iter().filter_map(|name| Some(format!("{name}: {}", header(name)?)));
    let version = header("anthropic-version").map(|version| format!("anthropic-version: {version}"));
    let headers: Vec<String> = keys.chain(version).collect();
    let Payload::Whole(body) = request.body() else { panic!("a whole body") };
    let body = String::from_utf8(body.to_vec()).expect("text");
    format!("{} {what} | {} {} | {} | {body}\n", row.id, request.method(), request.uri(), headers.join("; "))
}

fn chat(row: &Preset, provider: &Provider, stream: bool) -> String {
    let maker = provider.kind.chat.expect("chat");
    let body = match maker.dialect() {
        Dialect::Chat => {
            r#"{"model":"m","max_completion_tokens":9,"temperature":2,"stop":"x","tool_choice":"required","user":null,"messages":[{"role":"developer","content":[{"type":"text","text":"a"}]}]}"#
        }
        Dialect::Anthropic => r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"}]}"#,
        Dialect::Responses => r#"{"model":"m","input":"a"}"#,
        Dialect::Gemini => r#"{"contents":[{"role":"user","parts":[{"text":"a"}]}]}"#,
    };
    let fitted = provider.settings.quirks.fit(body.as_bytes()).expect("fitted").0;
    let body = maker.fit(Bytes::from(fitted)).expect("fitted").0;
    let ask = ChatAsk { body, call_id: "call_1", model: "m", stream, passed: &[] };
    let what = if stream { "chat-stream" } else { "chat" };
    line(row, what, &provider.chat(ask).expect("a request"))
}

fn embeddings(row: &Preset, provider: &Provider) -> String {
    let maker = provider.kind.embeddings.expect("embeddings");
    let request = EmbedRequest::openai(Bytes::from_static(br#"{"model":"m","input":["a"]}"#)).expect("a request");
    let ask = EmbedAsk { request: &request, model: "m", range: 0..1, floats_only: false };
    let body = maker.body(&ask).expect("a body").body;
    line(row, "embeddings", &maker.request(provider, "m", "call_1", body).expect("a request"))
}

fn rerank(row: &Preset, provider: &Provider) -> String {
    let maker = provider.kind.rerank.expect("rerank");
    let body = Bytes::from_static(br#"{"model":"m","query":"q","documents":["a","b"]}"#);
    let body = maker.body(&RerankRequest::read(body).expect("a request"), "m").expect("a body").body;
    line(row, "rerank", &maker.request(provider, "call_1", body).expect("a request"))
}

#[test]
fn every_row_is_sent_what_its_provider_documents() {
    let mut all = String::new();
    for row in presets() {
        let provider = provider(row);
        for ability in row.endpoints() {
            match ability {
                Ability::Chat => {
                    let whole = chat(row, &provider, false);
                    let streamed = chat(row, &provider, true);
                    // Where the path does not say it, the body does.
                    if streamed.replace("chat-stream", "chat") != whole {
                        all += &streamed;
                    }
                    all += &whole;
                }
                Ability::Embeddings => all += &embeddings(row, &provider),
                Ability::Rerank => all += &rerank(row, &provider),
                // `media_requests` has these.
                _ => {}
            }
        }
    }
    for (ours, documented) in all.lines().zip(GOLDEN.lines()) {
        assert_eq!(ours, documented);
    }
    assert_eq!(all.lines().count(), GOLDEN.lines().count(), "GOLDEN BEGINS\n{all}GOLDEN ENDS");
}

#[test]
fn the_page_has_every_row() {
    let mut rows = String::new();
    for row in presets() {
        let words: Vec<&str> = row.endpoints().iter().map(|one| one.word()).collect();
        let key = match row.key {
            KeyNeed::Needed => format!("`{}`", row.key_env),
            KeyNeed::Optional => "none needed".to_owned(),
        };
        let habits = row.quirks.words();
        let habits: Vec<String> = habits.iter().map(|word| format!("`{word}`")).collect();
        let stops = row.stops.map_or("?", |stops| if stops { "yes" } else { "no" });
        rows += &format!(
            "| `{}` | {} | `{}` | {} | {key} | {stops} | {} |\n",
            row.id,
            row.name,
            row.kind_name,
            words.join(", "),
            habits.join(", ")
        );
    }
    for row in rows.lines() {
        assert!(PAGE.contains(&format!("{row}\n")), "docs/providers.md lacks: {row}");
    }
    let on_page = PAGE.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(on_page, presets().len(), "the page has rows of its own");
}
