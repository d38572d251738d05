//! The finished file: links that come late, links that have ended, bytes behind a key, ranges.

use super::house::House;
use super::makers::{MAKERS, Maker};
use tollgate_media::video::Api;
use tollgate_upstream::video::VideoStanding;

#[tokio::test]
async fn the_bytes_are_a_video() {
    for maker in MAKERS {
        let house = House::of(*maker).await;
        let id = house.create("p").await.expect("accepted");
        let last = house.polls(&id).await.pop().expect("a poll").expect("a report");
        let link = last.link.expect("a link");
        let (status, bytes) =
            house.fetch(&id, &link, None).await.unwrap_or_else(|fault| panic!("{maker:?}: {fault:?}"));
        assert_eq!((status, &bytes[4..8]), (200, &b"ftyp"[..]), "{maker:?}");
        let (status, part) = house.fetch(&id, &link, Some("bytes=4-7")).await.expect("a range");
        assert_eq!((status, &part[..]), (206, &b"ftyp"[..]), "{maker:?}");
        let (status, _) = house.fetch(&id, &link, Some("bytes=999999-")).await.expect("an answer");
        assert_eq!(status, 416);
        let keyed = matches!(maker.api, Api::Sora | Api::Veo);
        assert_eq!(link.needs_key, keyed);
        let carries = matches!(maker.api, Api::DashScope | Api::MiniMaxV1 | Api::MiniMaxV2);
        assert_eq!(link.carries_expires, carries, "{maker:?}");
        let ends = carries || matches!(maker.api, Api::Ark | Api::Sora);
        assert_eq!(link.expires_at.is_some(), ends, "{maker:?}");
        assert!(link.expires_at.is_none_or(|end| (end - house.now - 86_400).abs() < 30), "{link:?}");
    }
}

#[tokio::test]
async fn the_key_goes_to_nobody_else() {
    let house = House::of(Maker::of(Api::Veo)).await;
    let id = house.create("p").await.expect("accepted");
    let link = house.polls(&id).await.pop().expect("a poll").expect("a report").link.expect("a link");
    house.fetch(&id, &link, None).await.expect("bytes");
    let asking = house.asking();
    let handle = house.handle(house.call(), &id);
    let own = house.video().content(&asking, &handle, &link).expect("a request");
    assert!(own.headers().contains_key("x-goog-api-key"));
    for url in ["https://storage.example/v.mp4", "http://127.0.0.1:1/v.mp4", "http://[::1]/v.mp4"] {
        let foreign = tollgate_upstream::video::FileLink { url: url.to_owned(), ..link.clone() };
        let request = house.video().content(&asking, &handle, &foreign).expect("a request");
        assert!(!request.headers().contains_key("x-goog-api-key"), "{url}");
    }
}

#[tokio::test]
async fn success_without_a_link_is_not_success() {
    // OpenAI's link is made of the id and cannot be missing.
    for maker in MAKERS.iter().filter(|maker| maker.api != Api::Sora) {
        let house = House::of(*maker).await;
        let id = house.create("[[sim:no_url n=2 queue=0 run=0]]").await.expect("accepted");
        let polls: Vec<_> = house.polls(&id).await.into_iter().map(|poll| poll.expect("a report")).collect();
        let seen: Vec<_> = polls.iter().map(|report| (report.standing, report.is_ready())).collect();
        let expected =
            [(VideoStanding::Succeeded, false), (VideoStanding::Succeeded, false), (VideoStanding::Succeeded, true)];
        assert_eq!(seen, expected, "{maker:?}");
        let id = house.create_again("[[sim:never_url queue=0 run=0]]").await;
        assert!(house.polls(&id).await.iter().all(|poll| !poll.as_ref().expect("a report").is_ready()), "{maker:?}");
    }
}

#[tokio::test]
async fn a_failed_file_step_is_tried_again() {
    let house = House::of(Maker::of(Api::MiniMaxV1)).await;
    let id = house.create("[[sim:file_error n=2 queue=0 run=0]]").await.expect("accepted");
    let polls = house.polls(&id).await;
    let ready: Vec<_> = polls.iter().map(|poll| poll.as_ref().is_ok_and(|report| report.is_ready())).collect();
    assert_eq!(ready, [false, false, true]);
    assert!(polls[0].is_err());
}

#[tokio::test]
async fn a_link_that_has_ended_is_a_fault() {
    for maker in MAKERS {
        let house = House::of(*maker).await;
        let id = house.create("[[sim:dead_link queue=0 run=0]]").await.expect("accepted");
        let link = house.polls(&id).await.pop().expect("a poll").expect("a report").link.expect("a link");
        let fault = house.fetch(&id, &link, None).await.expect_err("ended");
        assert!(matches!(fault.upstream_status, Some(403 | 404)), "{maker:?}: {fault:?}");
        assert!(!fault.maybe_charged);
    }
}

impl House {
    /// Another task, with an id of its own.
    pub async fn create_again(&self, prompt: &str) -> String {
        let plan = self.plan(&self.maker.plain(prompt));
        self.send(&plan, "task_0002").await.expect("accepted")
    }
}

/// A client would take it for a video.
#[tokio::test]
async fn a_compressed_file_is_not_passed_on() {
    let house = House::of(Maker::of(Api::Sora)).await;
    let id = house.create("[[sim:packed_file]]").await.expect("accepted");
    let link = house.polls(&id).await.pop().expect("a poll").expect("a report").link.expect("a link");
    let fault = house.fetch(&id, &link, None).await.expect_err("compressed");
    assert!(fault.message.contains("compressed") && !fault.maybe_charged, "{fault:?}");
}
