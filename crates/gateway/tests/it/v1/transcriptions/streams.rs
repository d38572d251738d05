//! Transcripts that are streamed.

use super::{KIND, SECOND, form, house, post, row_of, transcribe, wav};
use crate::house::{call_id, events};
use tollgate_store::Ending;

/// MM26: `stream` of a transcription was ignored.
#[tokio::test(flavor = "multi_thread")]
async fn events_pass_as_they_come_and_cost_what_a_whole_transcript_costs() {
    let house = house().await;
    // The file first, as one of the SDKs sends it.
    let body = form(&[("file", ""), ("model", "gpt-ears"), ("stream", "true")], "a.wav", &wav(4_001));
    let mut reply = post(&house, "/v1/audio/transcriptions", KIND, body).send().await.expect("a reply");
    assert_eq!(
        (reply.status().as_u16(), &reply.headers()["content-type"]),
        (200, &"text/event-stream".parse().unwrap())
    );
    assert!(!reply.headers().contains_key("x-tollgate-charge-usd"), "not certain before its end");
    let call = call_id(&reply);
    let mut text = String::new();
    while let Some(piece) = reply.chunk().await.expect("a whole stream") {
        text.push_str(std::str::from_utf8(&piece).expect("text"));
    }
    let all = events(&text);
    let deltas: String = all.iter().filter_map(|event| event["delta"].as_str()).collect();
    assert_eq!(deltas, format!("sim heard {} bytes", wav(4_001).len()));
    assert_eq!(all.last().expect("an event")["type"], "transcript.text.done");
    let row = house.row(call).await;
    assert_eq!((row.charge.nano(), row.ending), (5 * SECOND, Ending::Answered));
    assert!(row.raw_usage.is_some_and(|usage| usage.contains("input_tokens")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_words_are_there_before_the_last_are_said() {
    let house = house().await;
    let more = [("stream", "true"), ("prompt", "[[sim:delay_ms=50 words=40]]")];
    let mut reply = transcribe(&house, "gpt-ears", &more, &wav(1_000)).await;
    let first = reply.chunk().await.expect("a stream").expect("a piece");
    assert!(first.starts_with(b"data: {\"delta\":\"word1 \"") || first.starts_with(b"data: {"), "{first:?}");
    let received = house.sim.received().pop().expect("a request");
    assert!(!received.finished, "the provider is still speaking");
    while reply.chunk().await.expect("a whole stream").is_some() {}
    house.quiet().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_stream_answers_in_one_piece_and_says_so() {
    let house = house().await;
    // One model that does not offer it, and one whose provider ignores it.
    for (model, prompt) in [("whisper", ""), ("gpt-ears", "[[sim:whole]]")] {
        let reply = transcribe(&house, model, &[("stream", "true"), ("prompt", prompt)], &wav(1_000)).await;
        assert_eq!(reply.headers()["content-type"], "application/json", "{model}");
        assert_eq!(reply.headers()["x-tollgate-dropped"], "stream");
        assert_eq!(row_of(&house, &reply).await.charge.nano(), SECOND);
    }
}
