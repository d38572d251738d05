//! Graceful stop: streams may finish up to a limit, then end with a proper error event; everything is settled before exit.

use crate::house::{House, Plan, call_id, events, streamed};
use std::time::Duration;
use tollgate_store::Ending;

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_can_finish_finishes() {
    let mut house = House::new().await;
    let mut reply = house.post(&streamed("[[sim:tokens=5 delay_ms=150]]")).send().await.expect("a reply");
    let call = call_id(&reply);
    let mut text = String::from_utf8_lossy(&reply.chunk().await.expect("a chunk").expect("bytes")).into_owned();
    let rest = async {
        while let Some(chunk) = reply.chunk().await.expect("a chunk") {
            text.push_str(&String::from_utf8_lossy(&chunk));
        }
        text
    };
    let (text, ()) = tokio::join!(rest, house.restart());
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    assert_eq!(house.row(call).await.ending, Ending::Answered);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_finish_ends_with_an_error_event_and_is_settled() {
    let mut house =
        House::with(Plan { config: "[limits]\ndrain_time = \"500ms\"\n".to_owned(), ..Plan::default() }).await;
    let mut reply = house.post(&streamed("[[sim:tokens=500 delay_ms=50]]")).send().await.expect("a reply");
    let call = call_id(&reply);
    let mut text = String::from_utf8_lossy(&reply.chunk().await.expect("a chunk").expect("bytes")).into_owned();
    let rest = async {
        while let Some(chunk) = reply.chunk().await.expect("a proper end") {
            text.push_str(&String::from_utf8_lossy(&chunk));
        }
        text
    };
    let began = std::time::Instant::now();
    let (text, ()) = tokio::join!(rest, house.restart());
    assert!(began.elapsed() < Duration::from_secs(10));
    let events = events(&text);
    assert_eq!(events.last().expect("events")["error"]["code"], "server_draining", "{text}");
    // The restarted gateway found nothing to recover: it had been settled before the exit.
    assert_eq!(house.running().recovered, Default::default());
    let row = house.row(call).await;
    assert_eq!((row.ending, row.reason.as_str()), (Ending::UpstreamFault, "server_draining"));
    assert!(row.charge.nano() > 0 && row.charge <= row.hold);
}
