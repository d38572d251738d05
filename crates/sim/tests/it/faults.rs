//! Errors, cuts, silence and rubbish.

use std::time::{Duration, Instant};

use crate::it::client::{End, ask, post, sim, streamed};

#[tokio::test]
async fn http_errors() {
    let sim = sim().await;
    for status in [400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 502, 503, 529] {
        for body in [ask(&format!("sim-error{status}"), "x"), streamed("m", &format!("[[sim:error{status}]]"))] {
            let answer = post(&sim, &body).await;
            assert_eq!(answer.status(), status);
            assert!(answer.json()["error"]["message"].is_string());
            assert_eq!(answer.head.contains("retry-after: 7"), matches!(status, 429 | 503));
        }
    }
    assert_eq!(sim.counts().accepted, 0);
    let answer = post(&sim, &ask("sim-error400-context_length_exceeded", "x")).await;
    assert_eq!(answer.json()["error"]["code"], "context_length_exceeded");
    assert!(post(&sim, &ask("sim-error429-33", "x")).await.head.contains("retry-after: 33"));
    let page = post(&sim, &ask("sim-html500", "x")).await;
    assert!(page.status() == 500 && page.text().starts_with("<html>"));
    let redirect = post(&sim, &ask("sim-redirect", "x")).await;
    assert!(redirect.status() == 307 && redirect.head.contains("location: "));
}

#[tokio::test]
async fn error_events() {
    let sim = sim().await;
    let chunks = post(&sim, &streamed("sim-error_midstream-2", "x")).await.parsed();
    assert_eq!(chunks.len(), 1 + 2 + 1);
    assert_eq!(chunks[3]["error"]["code"], "server_error");
    let chunks = post(&sim, &streamed("sim-error_first", "x")).await.parsed();
    assert!(chunks.len() == 1 && chunks[0]["error"].is_object());
    assert!(post(&sim, &ask("sim-error_first", "x")).await.json()["error"].is_object());
    assert!(sim.received().iter().all(|received| received.accepted && !received.finished));
}

#[tokio::test]
async fn cuts() {
    let sim = sim().await;
    for (cut, end) in [("reset", End::Reset), ("fin", End::Closed), ("eof", End::Whole)] {
        for after in 0..4 {
            let marker = format!("[[sim:cut_midstream after={after} cut={cut}]]");
            let answer = post(&sim, &streamed("m", &marker)).await;
            assert_eq!((answer.end, answer.chunks.len()), (end, 1 + after), "{cut} {after}");
        }
        let answer = post(&sim, &ask("m", &format!("[[sim:cut_midstream cut={cut}]]"))).await;
        let end = if end == End::Whole { End::Closed } else { end };
        assert_eq!(answer.end, end, "{cut}");
        assert!(answer.bytes().len() > 100 && serde_json::from_slice::<serde_json::Value>(&answer.bytes()).is_err());
    }
    assert!(sim.received().iter().all(|received| !received.finished && received.client_closed_at_ms.is_none()));
}

#[tokio::test]
async fn silence() {
    let sim = sim().await;
    let answer = post(&sim, &ask("sim-hang", "x")).await;
    assert_eq!((answer.end, answer.head.as_str()), (End::Silent, ""));
    let answer = post(&sim, &streamed("sim-hang_midstream-2", "x")).await;
    assert_eq!((answer.end, answer.chunks.len()), (End::Silent, 3));
    let answer = post(&sim, &ask("sim-hang_midstream", "x")).await;
    assert_eq!((answer.end, answer.status()), (End::Silent, 200));
}

#[tokio::test]
async fn slow() {
    let sim = sim().await;
    let start = Instant::now();
    let answer = post(&sim, &streamed("sim-slow-120", "[[sim:tokens=3 delay_ms=50]]")).await;
    assert_eq!(answer.end, End::Whole);
    assert!(start.elapsed() >= Duration::from_millis(120 + 3 * 50));
}

#[tokio::test]
async fn rubbish() {
    let sim = sim().await;
    for kind in ["text", "binary", "json", "truncated"] {
        for body in [ask(&format!("sim-garbage-{kind}"), "x"), streamed("m", &format!("[[sim:garbage kind={kind}]]"))] {
            let answer = post(&sim, &body).await;
            assert_eq!((answer.status(), answer.end), (200, End::Whole));
            assert!(serde_json::from_slice::<serde_json::Value>(&answer.bytes()).is_err());
        }
    }
}

#[tokio::test]
async fn huge_lines() {
    let sim = sim().await;
    let answer = post(&sim, &streamed("sim-huge_line-2", "x")).await;
    let events = answer.events();
    let longest = events.iter().map(String::len).max().unwrap();
    assert!(longest > 2 << 20 && longest < (2 << 20) + 200);
    assert_eq!(events.last().unwrap(), "[DONE]");
    answer.parsed();
}
