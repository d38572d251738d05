//! Every provider that is known by name and speaks chat completions gets what it takes: one request
//! with every parameter, sent through each row.

use super::client::Client;
use crate::house::{House, Plan, error_of};
use serde_json::{Value, json};
use tollgate_gateway::settings::{ConfigSource, KeyNeed, Preset, presets};
use tollgate_wire::Dialect;

fn speaks_chat() -> impl Iterator<Item = &'static Preset> {
    let chat = |row: &&Preset| row.kind_name == "openai" && row.endpoint_names.iter().any(|name| name == "chat");
    presets().iter().filter(chat)
}

async fn house() -> House {
    let mut config = String::new();
    let mut catalog = String::new();
    for row in speaks_chat() {
        let id = &row.id;
        config += &format!(
            "[provider.p-{id}]\npreset = \"{id}\"\nbase_url = \"{{host}}/v1\"\nsecret_file = \"sim.key\"\ntakes_links = true\n"
        );
        catalog += &format!(
            "[model.\"{id}\"]\ncontext_window = 100000\nmax_output_tokens = 1000\n\
             supported_endpoint_types = [\"openai\", \"anthropic\"]\nprice = {{ input = 1_000_000, output = 2_000_000 }}\n\
             route = [{{ provider = \"p-{id}\", upstream_model = \"sim-plain\" }}]\n"
        );
    }
    // A model may differ from its provider.
    catalog += "[model.\"own-way\"]\nsupported_endpoint_types = [\"openai\"]\nprice = { input = 1_000_000, output = 2_000_000 }\n\
                route = [{ provider = \"p-mistral\", upstream_model = \"sim-plain\" }]\n\
                chat = { current_chat = true, drop = [\"top_p\"], temperature_max = 1 }\n";
    House::with(Plan { catalog: Box::leak(catalog.into_boxed_str()), config, ..Plan::default() }).await
}

fn everything(model: &str) -> Value {
    json!({
        "model": model, "max_completion_tokens": 9, "temperature": 1.5, "top_p": 0.9, "n": 1, "stop": ["zz"], "seed": 7,
        "frequency_penalty": 0.1, "presence_penalty": 0.1, "logit_bias": {"1": 1}, "user": "u", "store": false,
        "metadata": {"a": "b"}, "logprobs": true, "top_logprobs": 2, "parallel_tool_calls": true,
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}],
        "tool_choice": "auto", "stream": true, "stream_options": {"include_usage": true}, "prediction": null,
        "messages": [
            {"role": "developer", "content": [{"type": "text", "text": "be"}, {"type": "text", "text": "kind"}]},
            {"role": "user", "name": null, "content": "hello [[sim:tokens=3]]"},
        ],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_them_gets_what_it_takes_and_the_rest_is_reported() {
    let house = house().await;
    let chat = Client(Dialect::Chat);
    let mut rows = 0;
    for row in speaks_chat() {
        let (id, quirks) = (&row.id, &row.quirks);
        let reply = chat.post(&house, "/v1/chat/completions", &everything(id)).send().await.expect("a reply");
        let dropped = reply.headers().get("x-tollgate-dropped").map_or("", |value| value.to_str().expect("text"));
        let dropped: Vec<String> = dropped.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let status = reply.status();
        let text = reply.text().await.expect("a body");
        assert_eq!(status, 200, "{id}: {text}");
        let sent = house.sim.received().pop().expect("a call").json();

        let (limit, other) = match quirks.max_tokens_only {
            true => ("max_tokens", "max_completion_tokens"),
            false => ("max_completion_tokens", "max_tokens"),
        };
        assert_eq!((&sent[limit], sent.get(other)), (&json!(9), None), "{id}");
        let role = if quirks.no_developer_role { "system" } else { "developer" };
        assert_eq!(sent["messages"][0]["role"], role, "{id}");
        assert_eq!(sent["messages"][0]["content"].is_string(), quirks.text_content_only, "{id}");
        assert_eq!(sent.get("prediction").is_none(), quirks.no_null_members, "{id}");
        assert_eq!(sent["messages"][1].get("name").is_none(), quirks.no_null_members, "{id}");
        assert_eq!(sent.get("stream_options").is_none(), quirks.no_stream_options, "{id}");
        let temperature = quirks.temperature_max.map_or(json!(1.5), |most| json!(most));
        assert_eq!(sent["temperature"], temperature, "{id}");
        let mut expected: Vec<String> =
            quirks.drop.iter().filter(|name| everything(id).get(*name).is_some()).cloned().collect();
        expected.extend(quirks.temperature_max.map(|_| "temperature".to_owned()));
        for name in &quirks.drop {
            assert!(sent.get(name).is_none(), "{id}: {name} was sent");
        }
        let sorted = |mut list: Vec<String>| {
            list.sort();
            list
        };
        assert_eq!(sorted(dropped), sorted(expected.clone()), "{id}");

        // Who wants nothing left out is told the first of it, and nothing is sent.
        let strict = chat.post(&house, "/v1/chat/completions", &everything(id)).header("x-tollgate-strict", "true");
        let before = house.sim.received().len();
        let reply = strict.send().await.expect("a reply");
        assert_eq!(reply.status() == 200, expected.is_empty(), "{id}");
        let _ = reply.text().await;
        assert_eq!(house.sim.received().len() - before, usize::from(expected.is_empty()), "{id}");

        // The same of another dialect: what its provider does not know is not sent either.
        let anthropic = Client(Dialect::Anthropic);
        let reply = anthropic.ask(&house, id, "hello [[sim:tokens=3]]", false).await;
        assert_eq!(reply.status(), 200, "{id}");
        let sent = house.sim.received().pop().expect("a call").json();
        assert!(!quirks.max_tokens_only || sent.get("max_completion_tokens").is_none(), "{id}: {sent}");
        rows += 1;
    }
    assert!(rows >= 60, "{rows}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_may_differ_from_its_provider() {
    let house = house().await;
    let chat = Client(Dialect::Chat);
    let reply = chat.post(&house, "/v1/chat/completions", &everything("own-way")).send().await.expect("a reply");
    assert_eq!(reply.headers()["x-tollgate-dropped"], "temperature,top_p");
    let _ = reply.text().await;
    let sent = house.sim.received().pop().expect("a call").json();
    assert_eq!((&sent["max_completion_tokens"], &sent["seed"]), (&json!(9), &json!(7)), "{sent}");
    assert_eq!(sent["messages"][0]["role"], "developer");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_for_a_provider_of_texts_is_refused_before_anything_is_held() {
    let house = house().await;
    let body = json!({"model": "sambanova", "messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}]});
    let reply = Client(Dialect::Chat).post(&house, "/v1/chat/completions", &body).send().await.expect("a reply");
    let (status, error) = error_of(reply).await;
    assert_eq!((status, &error["param"]), (400, &json!("messages[0].content")), "{error}");
    assert!(house.sim.received().is_empty());
}

#[test]
fn what_is_wrong_with_a_preset_is_said_with_line_and_field() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("catalog")).expect("a folder");
    let file = dir.path().join("tollgate.toml");
    let source = |pairs: &[(&str, &str)]| {
        let environment = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        ConfigSource { file: file.clone(), environment: std::sync::Arc::new(environment) }
    };
    let rows = [
        ("[provider.a]\npreset = \"depseek\"\n", "preset", "did you mean \"deepseek\"?"),
        ("[provider.a]\npreset = \"deepseek\"\n", "secret_env", "DEEPSEEK_API_KEY is not set"),
        ("[provider.a]\npreset = \"cloudflare\"\nsecret_env = \"K\"\n", "account", "is needed for the address"),
        (
            "[provider.a]\npreset = \"cloudflare\"\nsecret_env = \"K\"\naccount = \"a/b\"\n",
            "account",
            "letters, digits",
        ),
        ("[provider.a]\npreset = \"ollama\"\nquirks = { drop = [\"messages\"] }\n", "drop", "cannot be left out"),
        (
            "[provider.a]\npreset = \"ollama\"\nquirks = { tool_choice = [[\"required\"]] }\n",
            "tool_choice",
            "pairs such as",
        ),
        ("[provider.a]\npreset = \"ollama\"\nquirks = { max_tokens = true }\n", "max_tokens", "is not a known key"),
        (
            "[provider.a]\npreset = \"vertex-gemini\"\nsecret_env = \"K\"\nregion = \"global\"\nproject = \"p\"\n",
            "provider.a",
            "JSON file of a service account",
        ),
    ];
    for (text, field, reason) in rows {
        std::fs::write(&file, text).expect("written");
        let mistakes = source(&[("K", "canary-key")]).load().err().unwrap_or_else(|| panic!("{text}"));
        let found =
            mistakes.iter().any(|one| one.field.ends_with(field) && one.reason.contains(reason) && one.line > 0);
        assert!(found, "{text}: {mistakes:#?}");
        assert!(!format!("{mistakes:?}").contains("canary"), "{mistakes:?}");
    }
    // The usual variable is enough, and a server of one's own needs none.
    std::fs::write(&file, "[provider.a]\npreset = \"deepseek\"\n[provider.b]\npreset = \"ollama\"\n").expect("written");
    let loaded = source(&[("DEEPSEEK_API_KEY", "k")]).load().expect("no mistakes");
    let provider = &loaded.serving.providers["a"];
    assert_eq!(provider.base_url.to_string(), "https://api.deepseek.com");
    assert!(provider.settings.quirks.reasoning_back && !provider.settings.takes_links);
    assert_eq!(loaded.serving.providers["b"].base_url.to_string(), "http://127.0.0.1:11434/v1");
    assert!(presets().iter().filter(|row| row.key == KeyNeed::Optional).count() >= 6);
}
