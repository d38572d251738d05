//! Video tasks: the rows of what `video_create.rs`, `video_tasks.rs` and `video_content.rs` answer.

use super::openapi::shapes::{idempotency, item_page, named, text};
use super::row::{Access, Errors, Family, MembersSee, Row};
use super::{video_content, video_create, video_tasks};
use crate::sale::offers::ENDPOINT_TYPE;
use serde_json::{Value, json};

pub const FAMILY: Family = Family { tag: "videos", rows, schemas };

fn rows() -> Vec<Row> {
    let (all, one, legacy) = ("/v1/videos", "/v1/videos/{id}", "/v1/video/generations/{id}");
    let content = "The finished file, whole or in ranges; a signed link opens it without a key";
    let file = || json!({ "type": "string", "format": "binary" });
    let created = |row: Row| row.with(idempotency).or_a_form().gives(named("Video")).names_itself();
    vec![
        created(
            Row::post(video_create::VIDEOS, Access::Paid, video_create::videos, BEGINS).takes(named("VideoRequest")),
        )
        .quoted(video_create::priced)
        .serves(ENDPOINT_TYPE),
        created(
            Row::post(video_create::GENERATIONS, Access::Paid, video_create::generations, BEGINS)
                .takes(named("VideoRequest")),
        )
        .quoted(video_create::priced),
        created(
            Row::post(video_create::REMIX, Access::Paid, video_create::remix, REMIXES).takes(named("RemixRequest")),
        )
        .quoted(video_create::remix_is_not_quoted),
        Row::get(all, Access::Key, video_tasks::list, "The video tasks of the account, newest first")
            .with(item_page)
            .gives(named("VideoList"))
            .to_members(MembersSee::OwnKeys),
        Row::get(one, Access::Key, video_tasks::one, "A video task in OpenAI's shape")
            .gives(named("Video"))
            .refused_with(&[502, 504])
            .to_members(MembersSee::OwnKeys),
        Row::delete(one, Access::Key, video_tasks::delete, "Removes a video task that has ended")
            .gives(named("VideoDeleted"))
            .refused_with(&[409, 502]),
        Row::get("/v1/videos/{id}/content", Access::Key, video_content::content, content)
            .with(file_parameters)
            .replies_with(200, "video/mp4", file())
            .replies_with(206, "video/mp4", file())
            .replies_bare(302)
            .replies_bare(416)
            .refused_with(&[409, 502, 504])
            .to_members(MembersSee::OwnKeys),
        Row::get(legacy, Access::Key, video_tasks::legacy, "A video task in the legacy shape")
            .gives(named("LegacyVideo"))
            .errors(Errors::LegacyVideo)
            .refused_with(&[502, 504])
            .to_members(MembersSee::OwnKeys),
    ]
}

const BEGINS: &str = "Begins a video task";
const REMIXES: &str = "Another video from a finished one and a new prompt, where the provider has that";

fn file_parameters() -> Vec<Value> {
    vec![
        json!({ "name": "variant", "in": "query", "schema": { "enum": ["video", "thumbnail", "spritesheet"], "default": "video" } }),
        json!({ "name": "Range", "in": "header", "schema": { "type": "string" } }),
    ]
}

/// Each family of makers reads its own part of a request; a task is shown in one of two shapes.
fn schemas() -> Value {
    let text = text();
    json!({
        "VideoRequest": { "type": "object", "required": ["model"], "additionalProperties": true, "properties": {
            "model": { "type": "string", "minLength": 1 },
            "prompt": text,
            "seconds": { "type": ["integer", "string"] },
            "duration": { "type": ["integer", "string"] },
            "size": text,
            "input_reference": { "type": "string", "description": "A link; in a form also a file" },
            "image": text,
            "images": { "type": "array", "items": text },
            "video_url": text,
            "webhook_url": { "type": "string", "format": "uri" },
            "metadata": { "type": "object" },
        } },
        "RemixRequest": { "type": "object", "required": ["prompt"], "properties": { "prompt": { "type": "string", "minLength": 1 } } },
        "Video": { "type": "object", "required": ["id", "object", "model", "status", "progress", "created_at"], "properties": {
            "id": text, "task_id": { "type": "string", "description": "The same as `id`" }, "object": { "const": "video" },
            "model": text, "status": { "enum": ["queued", "in_progress", "completed", "failed"] },
            "progress": { "type": "integer", "minimum": 0, "maximum": 100 },
            "created_at": { "type": "integer" }, "completed_at": { "type": ["integer", "null"] },
            "expires_at": { "type": ["integer", "null"] }, "seconds": text, "size": text,
            "remixed_from_video_id": { "type": ["string", "null"] },
            "metadata": { "type": ["object", "null"], "properties": { "url": { "type": "string", "format": "uri" } } },
            "error": { "type": ["object", "null"], "properties": { "code": text, "message": text } },
            "warnings": { "type": "array", "items": { "type": "object", "required": ["field", "message"], "properties": {
                "field": text, "message": text,
            } } },
        } },
        "VideoList": { "type": "object", "required": ["object", "data", "has_more"], "properties": {
            "object": { "const": "list" }, "data": { "type": "array", "items": { "$ref": "#/components/schemas/Video" } },
            "has_more": { "type": "boolean" }, "first_id": { "type": ["string", "null"] }, "last_id": { "type": ["string", "null"] },
        } },
        "VideoDeleted": { "type": "object", "required": ["id", "object", "deleted"], "properties": {
            "id": text, "object": { "const": "video.deleted" }, "deleted": { "const": true },
        } },
        "LegacyVideo": { "type": "object", "required": ["code", "data"], "properties": {
            "code": { "const": "success" }, "message": text,
            "data": { "type": "object", "required": ["task_id", "status", "progress", "fail_reason"], "properties": {
                "task_id": text, "progress": text, "fail_reason": text, "result_url": text,
                "status": { "enum": ["NOT_START", "SUBMITTED", "QUEUED", "IN_PROGRESS", "SUCCESS", "FAILURE"] },
            } },
        } },
    })
}
