//! Sessions at Azure: the current form, and the older one with a deployment, a version and the
//! events of the beta interface.

use super::{Talker, audio, kinds, rows};
use crate::house::{House, Plan};

const CATALOG: &str = r#"
[model."voice"]
context_window = 32000
max_output_tokens = 4096
supported_endpoint_types = ["realtime"]
price = { input = 1_000_000, output = 2_000_000, audio_input = 10_000_000, audio_output = 20_000_000, cache_read = 500_000 }
route = [{ provider = "azure", upstream_model = "gpt-realtime+plain+reply_model=gpt-realtime-2025-12-15" }]

[model."voice-older"]
context_window = 32000
max_output_tokens = 4096
supported_endpoint_types = ["realtime"]
price = { input = 1_000_000, output = 2_000_000, audio_input = 10_000_000, audio_output = 20_000_000, cache_read = 500_000 }
route = [{ provider = "azure-older", upstream_model = "gpt-realtime" }]
"#;

const CONFIG: &str = "[provider.azure]\nkind = \"azure\"\nbase_url = \"{host}/azure/openai/v1\"\nsecret_file = \"azure.key\"\n\
    [provider.azure-older]\nkind = \"azure\"\nbase_url = \"{host}/azure/openai/v1\"\nsecret_file = \"azure.key\"\n\
    api_version = \"2025-04-01-preview\"\n";

#[tokio::test(flavor = "multi_thread")]
async fn both_forms_of_azure_are_talked_to() {
    for (model, path, query) in [
        ("voice", "/azure/openai/v1/realtime", "model=gpt-realtime%2Bplain%2Breply_model%3Dgpt-realtime-2025-12-15"),
        ("voice-older", "/azure/openai/realtime", "api-version=2025-04-01-preview&deployment=gpt-realtime"),
    ] {
        let plan = Plan { catalog: CATALOG, config: CONFIG.to_owned(), ..Plan::default() };
        let house = House::with(plan).await;
        let mut talker = Talker::with_key(&house, &house.key, model).await.expect("a session");
        let created = talker.until("session.created").await.pop().expect("an event");
        assert_eq!(created["session"]["model"], model, "by our name, whatever version answers");
        let done = talker.turn("hello").await;
        assert_eq!(done["response"]["status"], "completed", "{model}: {done}");
        talker.send(serde_json::json!({ "type": "input_audio_buffer.append", "audio": audio(400, 500) })).await;
        let events = talker.until("response.done").await;
        assert!(kinds(&events).contains(&"response.output_audio.delta"), "{model}: {:?}", kinds(&events));
        assert!(!kinds(&events).contains(&"error"), "{model}: {events:?}");
        talker.leave().await;
        let rows = rows(&house).await;
        assert_eq!(rows.iter().filter(|row| row.charge.nano() > 0 && !row.estimated).count(), 2, "{model}: {rows:?}");
        let seen = house.sim.sessions();
        assert_eq!((seen[0].path.as_str(), seen[0].query.as_str()), (path, query));
    }
}
