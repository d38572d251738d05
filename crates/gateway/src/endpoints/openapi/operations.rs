//! What each operation is for, takes and gives: one line of the match for each row of the table of paths.

use serde_json::{Value, json};

/// An operation, apart from what its path and its access already say.
pub struct Operation {
    pub summary: &'static str,
    pub parameters: Vec<Value>,
    /// What it takes, by media type.
    pub body: Option<Value>,
    /// What it gives, by status and media type.
    pub replies: Vec<(u16, Option<Value>)>,
    /// Statuses of refusals that are its own.
    pub refusals: &'static [u16],
}

/// An operation that gives nothing described yet.
fn does(summary: &'static str) -> Operation {
    Operation { summary, parameters: Vec::new(), body: None, replies: Vec::new(), refusals: &[] }
}

impl Operation {
    fn with(mut self, parameters: Vec<Value>) -> Operation {
        self.parameters.extend(parameters);
        self
    }

    /// Takes JSON of this shape.
    fn takes(mut self, schema: Value) -> Operation {
        self.body = Some(json!({ "application/json": { "schema": schema } }));
        self
    }

    /// Takes the same as a form.
    fn or_a_form(mut self) -> Operation {
        if let Some(body) = &mut self.body {
            body["multipart/form-data"] = body["application/json"].clone();
        }
        self
    }

    /// Gives JSON of this shape.
    fn gives(self, schema: Value) -> Operation {
        self.replies_with(200, "application/json", schema)
    }

    fn replies_with(mut self, status: u16, kind: &str, schema: Value) -> Operation {
        self.replies.push((status, Some(json!({ kind: { "schema": schema } }))));
        self
    }

    fn gives_text(self) -> Operation {
        self.replies_with(200, "text/plain", json!({ "type": "string" }))
    }

    /// Gives an answer in a conversation: whole, or streamed as events.
    fn answers(mut self) -> Operation {
        self.replies.push((
            200,
            Some(json!({
                "application/json": { "schema": anything() }, "text/event-stream": { "schema": event() },
            })),
        ));
        self
    }

    /// May also be refused with these.
    fn refused_with(mut self, statuses: &'static [u16]) -> Operation {
        self.refusals = statuses;
        self
    }
}

fn named(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// One event of a stream; its data is JSON in the dialect of the path, or `[DONE]`.
fn event() -> Value {
    json!({ "type": "object", "required": ["data"], "properties": { "event": { "type": "string" }, "data": { "type": "string" } } })
}

/// An object whose members are another document's business.
fn anything() -> Value {
    json!({ "type": "object" })
}

pub fn of(method: &str, path: &str) -> Operation {
    match path {
        path if path.starts_with("/v1/responses") => responses(method, path),
        path if path.starts_with("/v1/conversations") => conversations(method, path),
        path if path.starts_with("/v1/video") => videos(method, path),
        path if path.starts_with("/api/admin") => operators(path),
        path if path.contains("{model}:") => gemini(path),
        path => others(path),
    }
}

fn others(path: &str) -> Operation {
    match path {
        "/v1/chat/completions" => does("A chat reply, streamed or whole, in OpenAI's format")
            .with(paid())
            .takes(named("ChatRequest"))
            .answers(),
        "/v1/messages" => does("A reply, streamed or whole, in Anthropic's format")
            .with(paid())
            .takes(named("MessagesRequest"))
            .answers(),
        "/v1/messages/count_tokens" => does("The tokens of a prompt in Anthropic's format, by the gateway's own count")
            .takes(named("MessagesCountRequest"))
            .gives(anything()),
        "/v1/models" => {
            does("The models this key can use, in the shape of the SDK that asks").gives(models("ModelList"))
        }
        "/v1/models/{id}" => does("One model").gives(models("Model")),
        "/v1beta/models" => does("The models this key can use on Gemini's paths").gives(anything()),
        "/v1beta/models/{id}" => does("One of them").gives(anything()),
        "/v1/social/{platform}/{capability}" => does("Public data of a social platform").gives(named("SocialResult")),
        "/api/social/catalog" => {
            does("The social data on sale: parameters, prices, status, health").gives(named("SocialCatalog"))
        }
        "/mcp" => {
            let operation = does("The social data as tools of the Model Context Protocol (streamable HTTP)")
                .takes(anything())
                .gives(anything());
            // A notification is taken note of.
            Operation { replies: [operation.replies, vec![(202, None)]].concat(), ..operation }
        }
        "/v1/quote" => does("The price of a call before it is made; nothing is sent, held or charged")
            .with(quote())
            .takes(anything())
            .gives(named("Quote")),
        "/api/pricing" => does("The price list; with a key, the account's own prices")
            .gives(named("PriceList"))
            .refused_with(&[401, 403, 500]),
        "/api/pricing/versions/{price_id}" => does("The price that a receipt names, as it was when the call was held")
            .gives(named("PriceVersion"))
            .refused_with(&[500]),
        "/v1/balance" => does("What the account has and what is held for running calls").gives(named("Balance")),
        "/v1/usage" => does("The usage log, newest first").with(usage_page()).gives(named("UsageList")),
        "/v1/usage/{call_id}" => does("One call with its price and charge").gives(named("Usage")),
        "/v1/usage/{call_id}/receipt" => {
            does("The signed receipt of a call that has ended").gives(named("Receipt")).refused_with(&[409])
        }
        "/.well-known/tollgate-receipts" => does("The public keys that verify receipts").gives(named("ReceiptKeys")),
        "/v1/webhooks/secret" => does("What the account verifies webhooks with").gives(named("WebhookSecret")),
        "/healthz" => does("The process runs").gives_text(),
        "/readyz" => {
            let busy = json!({ "type": "string", "description": "What stands in the way" });
            does("Paid calls can be taken").gives_text().replies_with(503, "text/plain", busy)
        }
        "/metrics" => does("Prometheus text, for the operator").replies_with(
            200,
            "application/openmetrics-text",
            json!({ "type": "string" }),
        ),
        "/openapi.json" => does("This description").gives(anything()),
        _ => does("What this is: a page for browsers, a record for programs").gives(anything()),
    }
}

fn responses(method: &str, path: &str) -> Operation {
    match (method, path) {
        ("GET", "/v1/responses") => {
            let operation = does("The same over a WebSocket: one response after another");
            Operation { replies: vec![(101, None)], refusals: &[426], ..operation }
        }
        (_, "/v1/responses") => does("A response, streamed or whole, in OpenAI's Responses format")
            .with(paid())
            .takes(named("ResponsesRequest"))
            .answers(),
        (_, "/v1/responses/compact") => does("A conversation compacted into one item by its model; a paid call")
            .takes(named("ResponsesRequest"))
            .gives(anything()),
        (_, "/v1/responses/input_tokens") => {
            does("The tokens of a prompt in the Responses format, by the gateway's own count")
                .takes(named("ResponsesCountRequest"))
                .gives(anything())
        }
        (_, "/v1/responses/{id}/cancel") => {
            does("Ends a response that runs in the background; none does").gives(anything()).refused_with(&[400])
        }
        (_, "/v1/responses/{id}/input_items") => {
            does("What a stored response was given").with(item_page()).gives(anything())
        }
        ("DELETE", _) => does("Erases a stored response").gives(anything()).refused_with(&[400]),
        _ => does("A stored response").gives(anything()).refused_with(&[400]),
    }
}

fn conversations(method: &str, path: &str) -> Operation {
    let metadata =
        json!({ "type": ["object", "null"], "maxProperties": 16, "additionalProperties": { "type": "string" } });
    let items = json!({ "type": ["array", "null"], "maxItems": 20, "items": { "type": "object" } });
    match (method, path) {
        (_, "/v1/conversations") => does("A new conversation, with up to 20 items")
            .takes(json!({ "type": "object", "properties": { "items": items, "metadata": metadata } }))
            .gives(anything()),
        ("POST", "/v1/conversations/{id}") => does("Changes the metadata of a conversation")
            .takes(json!({ "type": "object", "properties": { "metadata": metadata } }))
            .gives(anything()),
        ("DELETE", "/v1/conversations/{id}") => does("Erases a conversation").gives(anything()),
        (_, "/v1/conversations/{id}") => does("A conversation").gives(anything()),
        ("POST", "/v1/conversations/{id}/items") => does("Adds up to 20 items to a conversation")
            .takes(json!({ "type": "object", "required": ["items"], "properties": { "items": items } }))
            .gives(anything())
            .refused_with(&[409]),
        (_, "/v1/conversations/{id}/items") => does("The items of a conversation").with(item_page()).gives(anything()),
        ("DELETE", _) => does("Erases one item").gives(anything()),
        _ => does("One item").gives(anything()),
    }
}

fn videos(method: &str, path: &str) -> Operation {
    match (method, path) {
        ("POST", "/v1/videos" | "/v1/video/generations") => does("Begins a video task")
            .with(idempotency())
            .takes(named("VideoRequest"))
            .or_a_form()
            .gives(named("Video")),
        ("POST", _) => does("Another video from a finished one and a new prompt, where the provider has that")
            .with(idempotency())
            .takes(named("RemixRequest"))
            .or_a_form()
            .gives(named("Video")),
        (_, "/v1/videos") => {
            does("The video tasks of the account, newest first").with(item_page()).gives(named("VideoList"))
        }
        ("DELETE", _) => {
            does("Removes a video task that has ended").gives(named("VideoDeleted")).refused_with(&[409, 502])
        }
        (_, "/v1/videos/{id}") => {
            does("A video task in OpenAI's shape").gives(named("Video")).refused_with(&[502, 504])
        }
        (_, "/v1/video/generations/{id}") => {
            does("A video task in the legacy shape").gives(named("LegacyVideo")).refused_with(&[502, 504])
        }
        _ => {
            let file = json!({ "type": "string", "format": "binary" });
            let operation = does("The finished file, whole or in ranges; a signed link opens it without a key")
                .with(file_parameters());
            let operation = operation.replies_with(200, "video/mp4", file.clone()).replies_with(206, "video/mp4", file);
            let elsewhere = vec![(302, None), (416, None)];
            Operation { replies: [operation.replies, elsewhere].concat(), refusals: &[409, 502, 504], ..operation }
        }
    }
}

fn gemini(path: &str) -> Operation {
    let operation = if path.ends_with(":countTokens") {
        does("The tokens of a prompt in Gemini's format, by the gateway's own count").gives(anything())
    } else if path.ends_with(":streamGenerateContent") {
        does("A streamed reply in Gemini's format: events with `alt=sse`, else one JSON array")
            .with(vec![json!({ "name": "alt", "in": "query", "schema": { "enum": ["sse", "json"] } })])
            .answers()
    } else {
        does("A whole reply in Gemini's format, for models named gemini-…").answers()
    };
    operation.takes(named("GeminiRequest"))
}

fn operators(path: &str) -> Operation {
    let list = || named("List");
    match path {
        "/api/admin/social/cells" => does("The cells of social data with cost, status, who paused them and health")
            .with(vec![
                json!({ "name": "platform", "in": "query", "schema": { "type": "string" } }),
                json!({ "name": "paused", "in": "query", "schema": { "type": "boolean" } }),
            ])
            .gives(list()),
        "/api/admin/social/pause" => {
            does("Pause cells, with a reason").takes(named("SocialChangeRequest")).gives(list())
        }
        "/api/admin/social/resume" => {
            does("Sell paused cells again, with a reason").takes(named("SocialChangeRequest")).gives(list())
        }
        "/api/admin/social/changes" => does("Who paused and resumed what, when and why, newest first")
            .with(vec![number("limit", 1, 1000, 50)])
            .gives(list()),
        _ => does("What was used of a day's capacity for social data")
            .with(vec![number("back", 0, 3650, 0)])
            .gives(list()),
    }
}

/// OpenAI's shape, unless another SDK asks.
fn models(openai: &str) -> Value {
    json!({ "anyOf": [named(openai), anything()] })
}

fn number(name: &str, least: u32, most: u32, default: u32) -> Value {
    json!({ "name": name, "in": "query", "schema": { "type": "integer", "minimum": least, "maximum": most, "default": default } })
}

fn item_page() -> Vec<Value> {
    vec![
        number("limit", 1, 100, 20),
        json!({ "name": "after", "in": "query", "description": "`last_id` of the page before", "schema": { "type": "string" } }),
        json!({ "name": "order", "in": "query", "schema": { "enum": ["asc", "desc"], "default": "desc" } }),
    ]
}

fn usage_page() -> Vec<Value> {
    vec![
        number("limit", 1, 500, 50),
        json!({ "name": "before", "in": "query", "description": "`next_before` of the page before", "schema": { "type": "string" } }),
    ]
}

fn file_parameters() -> Vec<Value> {
    vec![
        json!({ "name": "variant", "in": "query", "schema": { "enum": ["video", "thumbnail", "spritesheet"], "default": "video" } }),
        json!({ "name": "Range", "in": "header", "schema": { "type": "string" } }),
    ]
}

fn idempotency() -> Vec<Value> {
    vec![json!({
        "name": "Idempotency-Key", "in": "header", "description": "The same key and body within 24 hours is charged once",
        "schema": { "type": "string", "minLength": 1, "maxLength": 255 },
    })]
}

/// The headers of a conversation.
fn paid() -> Vec<Value> {
    let strict = json!({
        "name": "x-tollgate-strict", "in": "header",
        "description": "`true`: refuse what the model's provider has nothing like, instead of leaving it out and naming it in `x-tollgate-dropped`",
        "schema": { "type": "string" },
    });
    [idempotency(), vec![strict]].concat()
}

/// The endpoint, and every counter of the usage log for an exact quote.
fn quote() -> Vec<Value> {
    let endpoints: Vec<&str> = crate::quotes::READERS.iter().map(|(path, _)| *path).collect();
    let mut all = vec![json!({
        "name": "endpoint", "in": "query", "required": true, "schema": { "type": "string" },
        "description": format!("the path of the call, one of {}", endpoints.join(", ")),
    })];
    if let Ok(Value::Object(counters)) = serde_json::to_value(tollgate_store::Counters::default()) {
        all.extend(counters.keys().map(|name| {
            json!({
                "name": name, "in": "query", "description": "states what is used, for an exact quote",
                "schema": { "type": "integer", "minimum": 0 },
            })
        }));
    }
    all
}
