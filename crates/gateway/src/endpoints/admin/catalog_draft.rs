//! `POST /api/admin/catalog/draft`: what `tollgate catalog enable|disable|import|update|tidy` would
//! do to what is on sale. Nothing is changed: the files of the answer are a candidate, to be
//! checked, compared and published with `merge`.

use super::catalog::{etag, invalid};
use super::catalog_preview::listed;
use super::schemas::record;
use super::{Form, OPERATOR, object, query, reply, wrong};
use crate::app::App;
use crate::endpoints::openapi::shapes::{named, text};
use crate::endpoints::row::Row;
use crate::endpoints::{changes, reading};
use crate::refusal::Refusal;
use crate::sale::{CatalogText, Serving};
use crate::who::operator;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tollgate_catalog::import::{
    BadDraft, CatalogDraft, CatalogEdits, CatalogFiles, DraftOutcome, EnableDraft, Glob, Import, ImportDraft, Margin,
    PriceLists, SourceKind, UpdateDraft, is_lock,
};
use tollgate_wire::error::Code;

/// Price lists are files of others.
const MOST_BODY: usize = 16 << 20;
/// Models of one list: several times what the longest has today.
const MOST_LISTED: usize = 10_000;
/// Patterns, names and texts of one field, and how long a short one is.
const MOST_NAMES: usize = 200;
const LONGEST_NAME: usize = 200;
const MOST_FACTS: usize = 10;
const LONGEST_FACTS: usize = 1 << 20;
/// Rows of an answer, of each sort; `counts` has how many there are.
const MOST_ROWS: usize = 10_000;

const ACTIONS: [&str; 5] = ["enable", "disable", "import", "update", "tidy"];

pub fn rows() -> Vec<Row> {
    let about = "What enabling, disabling, importing, updating or tidying models would change; changes nothing";
    vec![
        Row::post("/api/admin/catalog/draft", OPERATOR, draft, about)
            .takes(named("CatalogDraftRequest"))
            .gives(named("CatalogDraft"))
            .refused_with(&[409]),
    ]
}

async fn draft(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let outcome = async {
        operator::authenticate(&app.register(), &parts).await?;
        reading::only_json(&parts)?;
        query(&parts, &[])?;
        let body = reading::raw_body(&app, &parts, body, MOST_BODY).await?;
        // Lists are long and catalogs are read twice: not on a thread that serves calls. The turn
        // ends with the work, whether or not anybody waits for it.
        let own = app.clone();
        let work = move || {
            let busy = |_| Refusal::new(Code::Overloaded, "Other candidates are being read; try again.").after(2);
            let _turn = own.publishing.turns.try_acquire().map_err(busy)?;
            drafted(&own.serving.load_full(), &body, own.world.now_ms())
        };
        tokio::task::spawn_blocking(work).await.map_err(|error| {
            tracing::error!(%error, "making a draft failed");
            Refusal::new(Code::Internal, "The draft could not be made.")
        })?
    };
    let outcome = reading::guarded(outcome).await;
    let tag = outcome.as_ref().ok().and_then(changes::tag);
    changes::named(reply(&app, outcome), &app.new_call_id().to_string(), tag)
}

fn drafted(serving: &Serving, body: &Bytes, now: i64) -> Result<Value, Refusal> {
    let mut asked = DraftForm(Form(object(body)?));
    let action = asked.text("action", LONGEST_NAME)?.unwrap_or_default();
    let Some(action) = ACTIONS.into_iter().find(|one| *one == action) else {
        let all = ACTIONS.map(|one| format!("`{one}`")).join(", ");
        return Err(Refusal::about(Code::InvalidParameter, "action", format!("`action` is one of {all}.")));
    };
    let bad_lock =
        |bad| Refusal::new(Code::Conflict, format!("Not done: what is on sale cannot be drafted from: {bad}."));
    let files = serving.text.to_draft().map_err(bad_lock)?;
    let outcome = match action {
        "enable" => asked.enable(&files, serving, now),
        "disable" => asked.disable(&files),
        "import" => asked.import(&files, now),
        "update" => asked.update(&files, now),
        _ => asked.finished().and_then(|()| files.tidy(now).map(DraftOutcome::Draft).map_err(refused)),
    }?;
    match outcome {
        DraftOutcome::Draft(draft) => shown(serving, &files, action, &draft),
        DraftOutcome::Stopped(found) => Ok(stopped(serving, action, &found)),
    }
}

fn day(now: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(now).unwrap_or_default();
    at.strftime("%Y-%m-%d").to_string()
}

fn refused(bad: BadDraft) -> Refusal {
    match bad {
        BadDraft::Mistakes(mistakes) => invalid(&mistakes),
        BadDraft::Wrong { field: "route", reason } => {
            Refusal::about(Code::InvalidParameter, "route", format!("`route`: the configuration {reason}."))
        }
        BadDraft::Wrong { field, reason } => {
            let field = if field == "second" { "lists" } else { field };
            Refusal::about(Code::InvalidParameter, field, format!("`{field}`: {reason}."))
        }
    }
}

/// The fields of a draft; each action takes its own.
struct DraftForm(Form);

impl DraftForm {
    fn enable(&mut self, files: &CatalogFiles, serving: &Serving, now: i64) -> Result<DraftOutcome, Refusal> {
        let provider = self.needed("provider")?;
        let (models, accept) = (self.globs("models")?, self.globs("accept")?);
        let (route, margin) = (self.text("route", LONGEST_NAME)?, self.margin()?);
        self.finished()?;
        let providers: Vec<String> = serving.providers.keys().cloned().collect();
        let draft = files.enable(&EnableDraft {
            provider: &provider,
            models: &models,
            route: route.as_deref(),
            margin,
            accept: &accept,
            providers: &providers,
            today: &day(now),
        });
        draft.map(DraftOutcome::Draft).map_err(refused)
    }

    fn disable(&mut self, files: &CatalogFiles) -> Result<DraftOutcome, Refusal> {
        let (provider, models) = (self.needed("provider")?, self.globs("models")?);
        self.finished()?;
        files.disable(&provider, &models).map(DraftOutcome::Draft).map_err(refused)
    }

    fn import(&mut self, files: &CatalogFiles, now: i64) -> Result<DraftOutcome, Refusal> {
        let (lists, provider) = self.lists()?;
        if lists.is_empty() {
            let why = "`lists` is required: one price list, or two, each with `form` and `text`.";
            return Err(Refusal::about(Code::MissingParameter, "lists", why));
        }
        let file = self.needed("file")?;
        if is_lock(&file) || !CatalogText::is_name(&file) {
            return Err(wrong("file", "the name of a file of the catalog, such as mistral.toml"));
        }
        let (models, accept, facts) = (self.globs("models")?, self.globs("accept")?, self.facts()?);
        let (route, margin) = (self.text("route", LONGEST_NAME)?, self.margin()?);
        let prefix = self.text("prefix", LONGEST_NAME)?.unwrap_or_default();
        let source = self.text("source", 10 * LONGEST_NAME)?.unwrap_or_default();
        self.finished()?;
        let draft = files.import(&ImportDraft {
            lists: &lists,
            provider: provider.as_deref(),
            models: &models,
            facts: &facts,
            prefix: &prefix,
            source: &source,
            margin,
            route: route.as_deref(),
            file: &file,
            accept: &accept,
            today: &day(now),
        });
        draft.map_err(refused)
    }

    fn update(&mut self, files: &CatalogFiles, now: i64) -> Result<DraftOutcome, Refusal> {
        let (lists, _) = self.lists()?;
        let (names, accept, facts) =
            (self.texts("files", MOST_NAMES, LONGEST_NAME)?, self.globs("accept")?, self.facts()?);
        let prefix = self.text("prefix", LONGEST_NAME)?.unwrap_or_default();
        self.finished()?;
        let today = day(now);
        let (lists, facts) = (&lists, &facts[..]);
        let asked = UpdateDraft { files: &names, lists, facts, prefix: &prefix, accept: &accept, today: &today };
        files.update(&asked).map_err(refused)
    }

    /// The price lists, and whose models the first one is asked for.
    fn lists(&mut self) -> Result<(PriceLists, Option<String>), Refusal> {
        let bad = || wrong("lists", "a list of one or two objects with `form`, `text` and, where needed, `provider`");
        let given = match self.0.0.remove("lists") {
            None => Vec::new(),
            Some(Value::Array(given)) if given.len() <= 2 => given,
            Some(_) => return Err(bad()),
        };
        let (mut lists, mut whose) = (PriceLists::of_at_most(MOST_LISTED), None);
        for (at, one) in given.into_iter().enumerate() {
            let Value::Object(fields) = one else { return Err(bad()) };
            let mut fields = DraftForm(Form(fields));
            let (form, provider) = (fields.needed("form")?, fields.text("provider", LONGEST_NAME)?);
            let Some(Value::String(text)) = fields.0.0.remove("text") else { return Err(bad()) };
            fields.finished()?;
            let kind: SourceKind = form
                .parse()
                .map_err(|why| Refusal::about(Code::InvalidParameter, "form", format!("`form`: {why}.")))?;
            if at == 0 {
                whose.clone_from(&provider);
            }
            let name = if at == 0 { "the first list" } else { "the second list" };
            lists.add(kind, text, name.to_owned(), provider).map_err(refused)?;
        }
        Ok((lists, whose))
    }

    fn text(&mut self, name: &str, longest: usize) -> Result<Option<String>, Refusal> {
        match self.0.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.len() <= longest => Ok(Some(text)),
            Some(_) => Err(wrong(name, &format!("a text of at most {longest} bytes"))),
        }
    }

    fn needed(&mut self, name: &str) -> Result<String, Refusal> {
        let missing = || Refusal::about(Code::MissingParameter, name, format!("`{name}` is required."));
        self.text(name, LONGEST_NAME)?.filter(|text| !text.is_empty()).ok_or_else(missing)
    }

    fn texts(&mut self, name: &str, most: usize, longest: usize) -> Result<Vec<String>, Refusal> {
        let bad = || wrong(name, &format!("a list of at most {most} texts of at most {longest} bytes"));
        let given = match self.0.0.remove(name) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(given)) if given.len() <= most => given,
            Some(_) => return Err(bad()),
        };
        let one = |value: Value| match value {
            Value::String(text) if text.len() <= longest => Ok(text),
            _ => Err(bad()),
        };
        given.into_iter().map(one).collect()
    }

    fn globs(&mut self, name: &str) -> Result<Vec<Glob>, Refusal> {
        Ok(self.texts(name, MOST_NAMES, LONGEST_NAME)?.into_iter().map(Glob::new).collect())
    }

    fn facts(&mut self) -> Result<Vec<String>, Refusal> {
        self.texts("facts", MOST_FACTS, LONGEST_FACTS)
    }

    fn margin(&mut self) -> Result<Margin, Refusal> {
        let text = self.text("margin", 20)?.unwrap_or_else(|| "0%".to_owned());
        text.parse().map_err(|bad| Refusal::about(Code::InvalidParameter, "margin", format!("`margin` {bad}.")))
    }

    fn finished(&mut self) -> Result<(), Refusal> {
        Form(std::mem::take(&mut self.0.0)).finish()
    }
}

fn shown(serving: &Serving, files: &CatalogFiles, action: &str, draft: &CatalogDraft) -> Result<Value, Refusal> {
    let edits = if draft.stops.is_empty() { draft.with_lock(files) } else { CatalogEdits::new() };
    let edits: Map<String, Value> = edits.into_iter().map(|(name, text)| (name, json!(text))).collect();
    let after = CatalogText::sent(Some(&serving.text), &edits);
    let after = after.map_err(|why| {
        Refusal::about(
            Code::InvalidParameter,
            "models",
            format!("Of the catalog as it would be {why}; take fewer models."),
        )
    })?;
    let folded =
        draft.folded.iter().map(|(model, count, file)| json!({ "model": model, "folded": count, "file": file }));
    Ok(json!({
        "object": "catalog.draft",
        "action": action,
        "version": serving.text.version,
        "etag": etag(&serving.text.hash),
        "same": after.hash == serving.text.hash,
        "steps": draft.steps.iter().take(MOST_ROWS).collect::<Vec<_>>(),
        "stops": draft.stops.iter().take(MOST_ROWS).collect::<Vec<_>>(),
        "notes": draft.notes.iter().take(MOST_ROWS).collect::<Vec<_>>(),
        "left_out": [],
        "changes": listed(&draft.changes),
        "folded": folded.take(MOST_ROWS).collect::<Vec<_>>(),
        "counts": { "steps": draft.steps.len(), "stops": draft.stops.len(), "notes": draft.notes.len(), "changes": draft.changes.len() },
        "files": edits,
    }))
}

/// The lists have to be looked at before anything is planned.
fn stopped(serving: &Serving, action: &str, found: &Import) -> Value {
    let left = found.left_out.iter().map(|(model, reason)| json!({ "model": model, "reason": reason }));
    json!({
        "object": "catalog.draft",
        "action": action,
        "version": serving.text.version,
        "etag": etag(&serving.text.hash),
        "same": true,
        "steps": [],
        "stops": found.stops.iter().take(MOST_ROWS).collect::<Vec<_>>(),
        "notes": [],
        "left_out": left.take(MOST_ROWS).collect::<Vec<_>>(),
        "changes": [],
        "folded": [],
        "counts": { "steps": 0, "stops": found.stops.len(), "notes": 0, "changes": 0 },
        "files": {},
    })
}

pub fn schemas() -> Value {
    let short = |about: &str| json!({ "type": "string", "maxLength": LONGEST_NAME, "description": about });
    let names = |about: &str| json!({ "type": "array", "maxItems": MOST_NAMES, "items": { "type": "string", "maxLength": LONGEST_NAME }, "description": about });
    let forms: Vec<&str> = SourceKind::ALL.iter().map(|(name, _)| *name).collect();
    let list = json!({ "type": "object", "required": ["form", "text"], "additionalProperties": false, "properties": {
        "form": { "enum": forms }, "text": { "type": "string", "description": "The price list itself" },
        "provider": short("Whose models, as this list calls the provider"),
    } });
    let rows = |of: Value| json!({ "type": "array", "items": of });
    let mut draft = record(
        "What a command would change; a candidate for check, diff, preview and publish with `merge`",
        &["object", "action", "etag", "same", "steps", "stops", "notes", "changes", "files"],
    );
    let stop = json!({ "type": "object", "required": ["model", "reason"], "properties": { "model": text(), "reason": text() } });
    draft["properties"] = json!({
        "object": { "const": "catalog.draft" }, "action": { "enum": ACTIONS },
        "version": { "type": ["integer", "null"] },
        "etag": { "type": "string", "description": "Of the catalog that it was drafted for: `If-Match` of publishing" },
        "same": { "type": "boolean" },
        "steps": rows(json!({ "type": "object", "required": ["model", "what"], "properties": {
            "model": text(), "what": { "enum": ["add", "change", "remove", "yours", "left_out", "taken"] },
            "vendor": rows(json!({ "type": "object" })),
        } })),
        "stops": rows(stop.clone()), "left_out": rows(stop), "notes": rows(text()), "changes": rows(json!({ "type": "object" })),
        "folded": rows(json!({ "type": "object", "properties": { "model": text(), "folded": { "type": "integer" }, "file": text() } })),
        "counts": { "type": "object", "additionalProperties": { "type": "integer" } },
        "files": { "type": "object", "additionalProperties": { "type": ["string", "null"] }, "description": "Files with their new text; empty where something stops it" },
    });
    json!({
        "CatalogDraft": draft,
        "CatalogDraftRequest": { "type": "object", "required": ["action"], "additionalProperties": false, "properties": {
            "action": { "enum": ACTIONS },
            "provider": short("enable, disable: whose shipped models"),
            "models": names("enable, disable, import: only these; `*` stands for any text"),
            "route": short("enable, import: the provider of the configuration that serves them"),
            "margin": short("enable, import: what is put on top of the list price, such as 10%"),
            "accept": names("enable, import, update: models whose stops were looked at"),
            "lists": { "type": "array", "maxItems": 2, "items": list, "description": "import, update: price lists of others" },
            "facts": { "type": "array", "maxItems": MOST_FACTS, "items": text(), "description": "import, update: what lists do not have, as `[model.\"GLOB\"]` tables" },
            "prefix": short("import, update: put in front of names"),
            "source": { "type": "string", "description": "import: where prices can be looked at" },
            "file": short("import: the file of the catalog, such as mistral.toml"),
            "files": names("update: only these files"),
        } },
    })
}
