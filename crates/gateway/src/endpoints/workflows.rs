//! `GET /api/workflows`: records of workflows whose contract is fixed, for anybody; drafts are the
//! operators' own (`/api/admin/workflows`). A record that is not to be indexed is in no list and is
//! found by its name.

use super::openapi::{
    self,
    shapes::{named, text},
};
use super::reading;
use super::row::{Access, Family, Row};
use super::runs::RUNS;
use super::tagged::tagged_json;
use crate::app::App;
use crate::refusal::Refusal;
use crate::sale::WorkflowPage;
use crate::sale::workflows::BoundWorkflow;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse as _, Response};
use http::{Method, header};
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};
use tollgate_media::social::pairs;
use tollgate_wire::error::{Code, ErrorFormat};
use tollgate_workflows::{PackageStep, SCHEMA_TEXT, SelectionPolicy, Workflow, semantic_digest};

pub const FAMILY: Family = Family { tag: "workflows", rows, schemas };

const CACHE: &str = "public, max-age=60";

fn rows() -> Vec<Row> {
    let one = "/api/workflows/{slug}";
    vec![
        Row::get("/api/workflows", Access::Public, list, "Workflows whose contract is fixed")
            .with(|| {
                let schema = json!({ "type": "string", "pattern": "^[a-z]{2}(-[a-z]{2})?$" });
                vec![json!({ "name": "locale", "in": "query", "description": "Those that have it", "schema": schema })]
            })
            .gives(named("WorkflowList")),
        Row::get("/api/workflows/schema", Access::Public, schema, "The JSON Schema of a workflow record")
            .gives(json!({ "type": "object" })),
        Row::get(one, Access::Public, show, "One workflow record").routed_by(one).gives(named("Workflow")),
        Row::get("/api/workflows/{slug}.json", Access::Public, show, "The same, as a file")
            .routed_by(one)
            .gives(named("Workflow")),
        Row::get("/sitemap.xml", Access::Public, sitemap, "The workflows that search engines should know")
            .replies_with(200, "application/xml", text()),
    ]
}

fn schemas() -> Value {
    let object = || json!({ "type": "object" });
    json!({
        "Workflow": {
            "type": "object", "description": "As /api/workflows/schema describes it",
            "required": ["schema_version", "contract_status", "workflow_id", "slug", "inputs", "runtime_binding"],
            "properties": {
                "schema_version": text(), "contract_status": text(), "workflow_id": text(), "slug": text(),
                "title": text(), "summary": text(), "inputs": { "type": "array", "items": object() },
                "runtime_binding": object(),
            },
        },
        "WorkflowList": { "type": "object", "required": ["object", "data"], "properties": {
            "object": { "const": "list" }, "data": { "type": "array", "items": named("Workflow") },
        } },
    })
}

fn replied(request: Request, page: WorkflowPage) -> Response {
    tagged_json(&request.into_parts().0, page.body, page.etag, CACHE)
}

pub async fn list(State(app): State<Arc<App>>, request: Request) -> Response {
    match locale(request.uri().query().unwrap_or("")) {
        Ok(locale) => replied(request, app.workflows.list(locale.as_deref())),
        Err(refusal) => reading::refused(&app, ErrorFormat::OpenAi, refusal, ""),
    }
}

fn locale(query: &str) -> Result<Option<String>, Refusal> {
    let wrong = |message: &str| Refusal::about(Code::InvalidParameter, "locale", format!("`locale` {message}."));
    let mut found = None;
    for (name, value) in pairs(query).map_err(|_| wrong("cannot be read: the query is broken"))? {
        if name != "locale" {
            let name: String = name.chars().take(64).collect();
            let message = format!("`{name}` is not a parameter of this endpoint.");
            return Err(Refusal::about(Code::UnknownParameter, &name, message));
        }
        let parts: Vec<&str> = value.split('-').collect();
        let two = |part: &&str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_lowercase());
        if parts.len() > 2 || !parts.iter().all(two) {
            return Err(wrong("is a language such as en, or with a region de-at"));
        }
        if found.replace(value.into_owned()).is_some() {
            return Err(wrong("is given twice"));
        }
    }
    Ok(found)
}

pub async fn sitemap(State(app): State<Arc<App>>, request: Request) -> Response {
    let base = reading::base(&app, &request.into_parts().0).replace('&', "&amp;").replace('<', "&lt;");
    let mut page = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
    );
    for (slug, shown) in app.workflows.all().iter().filter(|(_, shown)| shown.is_listed()) {
        // Neither can have a character that XML minds: both were checked.
        let record = &shown.bound.workflow.record;
        if record.discovery.sitemap {
            let day = &record.last_modified;
            page.push_str(&format!("<url><loc>{base}/api/workflows/{slug}</loc><lastmod>{day}</lastmod></url>\n"));
        }
    }
    page.push_str("</urlset>\n");
    ([(header::CONTENT_TYPE, "application/xml"), (header::CACHE_CONTROL, CACHE)], page).into_response()
}

pub async fn schema(request: Request) -> Response {
    static PAGE: LazyLock<WorkflowPage> = LazyLock::new(|| WorkflowPage::of(SCHEMA_TEXT));
    replied(request, PAGE.clone())
}

pub async fn show(
    State(app): State<Arc<App>>,
    slug: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response {
    let slug = slug.map(|Path(slug)| slug).unwrap_or_default();
    let all = app.workflows.all();
    let found = all.get(slug.strip_suffix(".json").unwrap_or(&slug)).filter(|shown| shown.is_public());
    match found {
        Some(shown) => replied(request, shown.page.clone()),
        None => {
            let refusal = Refusal::new(Code::NotFound, "There is no such workflow.");
            reading::refused(&app, ErrorFormat::OpenAi, refusal, "")
        }
    }
}

/// A workflow bound to the operation that its endpoint is.
pub fn bound(workflow: Arc<Workflow>) -> BoundWorkflow {
    let binding = &workflow.record.runtime_binding;
    let own = format!("/v1/workflows/{}/runs", workflow.record.slug);
    let path = binding.endpoint.as_deref().map(|path| if path == own { RUNS } else { path });
    let operation = path.and_then(|path| openapi::operation(&Method::POST, path));
    let mut described = operation.as_ref().map_or(Value::Null, |operation| operation.described.clone());
    let steps = workflow.package.iter().flat_map(|package| &package.steps);
    let asked: Vec<Value> = steps.map(|step| asked_of(step).unwrap_or_default()).collect();
    if !asked.is_empty() {
        described["steps"] = Value::Array(asked);
    }
    let digest = semantic_digest(&workflow.value, workflow.package.as_ref().map(|package| &*package.text), &described);
    let mut unbound = Vec::new();
    match (&binding.endpoint, &operation) {
        (None, _) => unbound.push("runtime_binding.endpoint is null".to_owned()),
        (Some(path), None) => unbound.push(format!("POST {path} is not an endpoint of this build")),
        (Some(_), Some(operation)) => {
            let id = described["operationId"].as_str().unwrap_or_default();
            if binding.operation_id.as_deref() != Some(id) {
                unbound.push(format!("runtime_binding.operation_id must be {id:?}"));
            }
            for (input, field) in &binding.request_field_map {
                let field = field.as_str().unwrap_or_default();
                if !operation.takes(field) {
                    unbound.push(format!("the operation takes no {field:?}, which the input {input:?} is mapped to"));
                }
            }
        }
    }
    let policy = &workflow.record.executor_query.selection_policy;
    if SelectionPolicy::read(policy).is_none() {
        unbound.push(format!("executor_query.selection_policy is {policy:?}; \"cheapest\" and \"first\" are known"));
    }
    let required = workflow.record.inputs.iter().filter(|input| input.required);
    for input in required.filter(|input| binding.known_unimplemented_fields.contains(&input.id)) {
        unbound.push(format!("the required input {:?} is not implemented", input.id));
    }
    let steps = workflow.package.iter().flat_map(|package| &package.steps);
    unbound.extend(steps.filter(|step| !is_sold(step)).map(|step| {
        format!("step {:?} asks {}, which is not an endpoint that can be paid for", step.name, step.endpoint)
    }));
    let openapi_path = operation.map(|operation| operation.place);
    BoundWorkflow { workflow, openapi_path, digest, unbound }
}

/// What the endpoint of a step takes, as our API description has it.
fn asked_of(step: &PackageStep) -> Option<Value> {
    let row = super::table::rows().iter().find(|row| row.path == step.endpoint && row.access == Access::Paid)?;
    openapi::operation(&row.method, row.path).map(|operation| operation.described)
}

/// Steps are ordinary calls of an account.
fn is_sold(step: &PackageStep) -> bool {
    super::table::rows().iter().any(|row| row.path == step.endpoint && row.access == Access::Paid)
}
