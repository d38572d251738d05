//! `video create|wait|show|list`: videos as a customer gets them, over the network and with a key.

use crate::args::{GatewayArgs, VideoCommand, VideoWaitArgs};
use crate::http::Http;
use crate::real;
use crate::show::Output;
use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::Instant;

const LIST: &[&str] = &["id", "model", "status", "progress", "seconds", "error.code"];
/// Times in a row that the gateway may be out of reach while a task is waited for: it may be
/// restarting.
const MISSES: u32 = 10;

pub async fn video(command: VideoCommand, out: &Output) -> anyhow::Result<ExitCode> {
    match command {
        VideoCommand::Create { model, prompt, fields, gateway } => {
            let mut body: Value = serde_json::from_str(&fields).context("--fields")?;
            let Some(object) = body.as_object_mut() else { bail!("--fields: write a JSON object") };
            object.insert("model".to_owned(), json!(model));
            object.insert("prompt".to_owned(), json!(prompt));
            let reply = http(&gateway)?.send("/v1/videos", Some(body.to_string().into())).await?;
            show(&reply.json()?, out);
        }
        VideoCommand::Wait(wait) => return self::wait(wait, out).await,
        VideoCommand::Show { id, gateway } => {
            let reply = http(&gateway)?.send(&path(&id)?, None).await?;
            show(&reply.json()?, out);
        }
        VideoCommand::List { limit, gateway } => {
            let reply = http(&gateway)?.send(&format!("/v1/videos?limit={limit}"), None).await?;
            let page = reply.json()?;
            out.table(&page, page["data"].as_array().map_or(&[], Vec::as_slice), LIST);
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn wait(wait: VideoWaitArgs, out: &Output) -> anyhow::Result<ExitCode> {
    let http = http(&wait.gateway)?;
    let path = path(&wait.id)?;
    let until = Instant::now() + Duration::from_secs(wait.patience);
    let mut missed = 0;
    let task = loop {
        match http.send(&path, None).await {
            Ok(reply) if reply.status.is_server_error() && missed < MISSES => missed += 1,
            Ok(reply) => {
                missed = 0;
                let task = reply.json()?;
                bar(&task);
                if matches!(task["status"].as_str(), Some("completed" | "failed")) {
                    break task;
                }
            }
            Err(error) if missed >= MISSES => return Err(error),
            Err(_) => missed += 1,
        }
        if Instant::now() >= until {
            bail!(
                "{} has not ended within {} seconds; it goes on, and can be waited for again",
                wait.id,
                wait.patience
            );
        }
        tokio::time::sleep(Duration::from_secs(wait.every)).await;
    };
    if std::io::stderr().is_terminal() {
        eprintln!();
    }
    if task["status"] == "failed" {
        out.say(&task, || {
            let text = |name: &str| task["error"][name].as_str().unwrap_or("?").to_owned();
            format!("{} failed: {} ({}); it was not charged", wait.id, text("message"), text("code"))
        });
        return Ok(ExitCode::FAILURE);
    }
    let saved = match &wait.out {
        Some(file) => Some((file, http.save(&format!("{path}/content"), file).await?)),
        None => None,
    };
    out.say(&task, || match saved {
        Some((file, bytes)) => format!("{}: {bytes} bytes in {}", wait.id, file.display()),
        None => format!("{}: {}", wait.id, task["metadata"]["url"].as_str().unwrap_or("completed")),
    });
    Ok(ExitCode::SUCCESS)
}

fn http(gateway: &GatewayArgs) -> anyhow::Result<Http> {
    Http::new(gateway, &real::api_key())
}

fn path(id: &str) -> anyhow::Result<String> {
    if !id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        bail!("{id:?} is not the id of a task");
    }
    Ok(format!("/v1/videos/{id}"))
}

fn show(task: &Value, out: &Output) {
    out.say(task, || {
        let text = |name: &str| task[name].as_str().unwrap_or("?").to_owned();
        let mut line = format!("{} {} {} {}%", text("id"), text("model"), text("status"), task["progress"]);
        for warning in task["warnings"].as_array().into_iter().flatten() {
            let part = |name: &str| warning[name].as_str().unwrap_or_default().to_owned();
            line += &format!("\n  {}: {}", part("field"), part("message"));
        }
        line
    });
}

fn bar(task: &Value) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    eprint!("\r{}", progress(task));
    let _ = std::io::stderr().flush();
}

/// The line that is drawn over and over: always as wide, so that nothing of the last one stays.
fn progress(task: &Value) -> String {
    let percent = task["progress"].as_u64().unwrap_or(0).min(100);
    let filled = usize::try_from(percent / 5).unwrap_or(0);
    let bar: String = (0..20).map(|at| if at < filled { '#' } else { '·' }).collect();
    format!("[{bar}] {percent:3}% {:<12}", task["status"].as_str().unwrap_or("?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_of_progress_are_equally_wide() {
        for (task, line) in [
            (json!({"status": "queued", "progress": 0}), "[····················]   0% queued      "),
            (json!({"status": "in_progress", "progress": 52}), "[##########··········]  52% in_progress "),
            (json!({"status": "completed", "progress": 100}), "[####################] 100% completed   "),
            (json!({"status": "failed", "progress": 250}), "[####################] 100% failed      "),
            (json!({}), "[····················]   0% ?           "),
        ] {
            assert_eq!(progress(&task), line, "{task}");
        }
    }
}
