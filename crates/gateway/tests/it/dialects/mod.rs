//! Conversations in four dialects on either side: what a client of each gets, whatever its model's
//! provider speaks.

mod agents;
pub mod client;
pub mod clouds;
mod endpoints;
mod given;
mod hosted;
mod links;
mod long;
mod lost;
mod made_media;
mod made_voices;
mod makers;
mod model_names;
pub mod packed;
mod pairs;
mod presets;
pub mod scripted;
mod seals;
mod thinking;
mod unseen;

use crate::house::{House, Plan};

/// The models of [`CATALOG`], one for each dialect of providers.
pub const UPSTREAMS: [&str; 4] =
    ["gemini-on-openai", "gemini-on-anthropic", "gemini-on-openai-response", "gemini-on-gemini"];

pub async fn house() -> House {
    House::with(Plan { catalog: CATALOG, ..Plan::default() }).await
}

/// A model for each dialect of providers, all of them strict, sold in every format, at 1,000 and
/// 2,000 nano-USD per token.
pub const CATALOG: &str = r#"
[model."gemini-on-openai"]
context_window = 100000
reasoning_efforts = ["none", "low", "medium", "high"]
max_output_tokens = 1000
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000, "tool:web_search" = 10_000, "tool:tool_search" = 0, "tool:image_generation" = 0 }
route = [{ provider = "sim", upstream_model = "sim-strict" }]

[model."gemini-on-anthropic"]
context_window = 100000
max_output_tokens = 1000
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000, "tool:web_search" = 10_000, "tool:tool_search" = 0, "tool:image_generation" = 0 }
route = [{ provider = "sim-anthropic", upstream_model = "sim-plain" }]

[model."gemini-on-openai-response"]
context_window = 100000
reasoning_efforts = ["none", "low", "medium", "high"]
max_output_tokens = 1000
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000, "tool:web_search" = 10_000, "tool:tool_search" = 0, "tool:image_generation" = 0 }
route = [{ provider = "sim-responses", upstream_model = "sim-plain" }]

[model."gemini-on-gemini"]
context_window = 100000
max_output_tokens = 1000
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000, "tool:web_search" = 10_000, "tool:tool_search" = 0, "tool:image_generation" = 0 }
route = [{ provider = "sim-gemini", upstream_model = "sim-plain" }]

[model."does-not-think"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim-responses", upstream_model = "sim-plain" }]

[model."strict-one"]
supported_endpoint_types = ["openai", "openai-response"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[model."strict-one".chat]
sampling = false
state = false
tools_need_effort = "none"
refused_tool_choice = ["any", "named"]
named_roles = ["group"]
prefill = false

[model."gemini-strict"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
chat = { tools_need_effort = "none" }
"#;
