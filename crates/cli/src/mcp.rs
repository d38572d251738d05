//! `tollgate mcp`: the tools of a gateway's `/mcp` for programs that speak the Model Context
//! Protocol over stdin and stdout. One message per line; each is passed on with the caller's key,
//! and its answer printed. Nothing else is written to stdout.

use crate::args;
use crate::http::Http;
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

pub async fn mcp(mcp: args::McpArgs, key: &str) -> anyhow::Result<()> {
    let http = Arc::new(Http::new(&mcp.gateway, key)?);
    let path = format!("/mcp?platform={}&capability={}", mcp.platforms.join(","), mcp.capabilities.join(","));
    let out = Arc::new(Mutex::new(tokio::io::stdout()));
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut running = JoinSet::new();
    while let Some(line) = lines.next_line().await? {
        if line.trim().is_empty() {
            continue;
        }
        let (http, out, path) = (http.clone(), out.clone(), path.clone());
        // Calls may take long; the next message does not wait for them.
        running.spawn(async move {
            if let Some(answer) = answer(&http, &path, line).await {
                let mut out = out.lock().await;
                // The reader may be gone; then there is nobody to tell.
                let _ = out.write_all(format!("{answer}\n").as_bytes()).await;
                let _ = out.flush().await;
            }
        });
        while running.try_join_next().is_some() {}
    }
    while running.join_next().await.is_some() {}
    Ok(())
}

async fn answer(http: &Http, path: &str, line: String) -> Option<String> {
    let id = serde_json::from_str::<Value>(&line).ok().and_then(|message| message.get("id").cloned());
    let failed = |text: String| {
        let error = json!({ "code": -32000, "message": text });
        id.clone().map(|id| json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string())
    };
    match http.send(path, Some(Bytes::from(line))).await {
        Ok(reply) if reply.status == 200 => Some(String::from_utf8_lossy(&reply.body).into_owned()),
        Ok(reply) if reply.status == 202 => None,
        Ok(reply) => {
            let error: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
            let text = error["error"]["message"].as_str().unwrap_or("the gateway refused").to_owned();
            failed(format!("{}: {text}", reply.status))
        }
        Err(error) => failed(format!("{error:#}")),
    }
}
