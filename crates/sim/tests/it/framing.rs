//! Streams that are correct but not framed the way most are.

use serde_json::Value;

use crate::it::client::{Answer, post, sim, streamed};

async fn play(model: &str) -> Answer {
    let sim = sim().await;
    post(&sim, &streamed(model, "hello")).await
}

#[tokio::test]
async fn line_ends() {
    let text = play("sim-crlf").await.text();
    assert!(text.ends_with("data: [DONE]\r\n\r\n") && !text.replace("\r\n", "").contains('\n'));
    let text = play("sim-crlf-cr").await.text();
    assert!(text.ends_with("data: [DONE]\r\r") && !text.contains('\n'));
}

#[tokio::test]
async fn comments_and_fields() {
    let text = play("sim-comments").await.text();
    assert!(text.starts_with(": first\n\n: PROCESSING\ndata: {") && text.contains("\n: inside\n\n"));
    let text = play("sim-framing").await.text();
    assert!(text.starts_with("\u{feff}retry: 1000\nevent: message\ndata:{"));
    let joined = text.split("\n\n").nth(1).unwrap().lines();
    let joined: Vec<_> = joined.map(|line| line.strip_prefix("data: ").unwrap()).collect();
    assert!(joined.len() > 5 && serde_json::from_str::<Value>(&joined.join("\n")).is_ok());
}

#[tokio::test]
async fn endings() {
    let answer = play("sim-no_done").await;
    assert!(answer.parsed().len() == answer.events().len());
    let answer = play("sim-no_finish").await;
    assert!(answer.parsed().iter().all(|chunk| chunk["choices"][0]["finish_reason"].is_null()));
    assert_eq!(answer.events().last().unwrap(), "[DONE]");
    let events = play("sim-after_done").await.events();
    assert_eq!(events.iter().filter(|event| *event == "[DONE]").count(), 2);
    assert!(events[events.len() - 3].contains("afterthought"));
    assert!(!play("sim-no_content_type").await.head.contains("content-type"));
}

#[tokio::test]
async fn characters() {
    let answer = play("sim-split_utf8").await;
    let broken = answer.chunks.iter().filter(|chunk| std::str::from_utf8(chunk).is_err());
    assert!(broken.count() > 5, "pieces end inside characters");
    assert!(answer.said().starts_with("naïve 東京 🙂 Übergröße مرحبا"));
    let answer = play("sim-u2028").await;
    assert!(answer.text().contains('\u{2028}') && answer.text().contains('\u{85}'));
    assert!(answer.said().starts_with("a\u{2028}b c\u{2029}d"));
}
