//! Which files are taken: by their content, by their length and by their size.

use super::{KIND, SECOND, form, house, post, row_of, sent, transcribe, wav, wav_of};
use crate::house::{House, error_of};
use serde_json::json;
use std::process::{Command, Stdio};

/// A file that ffmpeg makes, of so many seconds of sound.
fn made(dir: &std::path::Path, name: &str, seconds: &str, options: &str) -> Vec<u8> {
    let path = dir.join(name);
    let source = format!("sine=frequency=440:sample_rate=48000:duration={seconds}");
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-y", "-f", "lavfi", "-i", &source]).args(options.split_whitespace()).arg(&path);
    let done = command.stdin(Stdio::null()).output().expect("ffmpeg is installed (scripts/setup test)");
    assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
    std::fs::read(&path).expect("the file that ffmpeg made")
}

#[tokio::test(flavor = "multi_thread")]
async fn seconds_are_counted_from_the_file_and_rounded_up() {
    let house = house().await;
    for (millis, seconds) in [(1, 1), (200, 1), (999, 1), (1_000, 1), (1_001, 2), (30_000, 30), (30_090, 31)] {
        let reply = transcribe(&house, "short-ears", &[], &wav(millis)).await;
        assert_eq!(reply.status(), 200, "{millis} ms");
        let row = row_of(&house, &reply).await;
        assert_eq!((row.counters.seconds, row.charge.nano()), (seconds, i64::try_from(seconds).unwrap() * SECOND));
    }
    let before = house.available().await;
    let (status, error) = error_of(transcribe(&house, "short-ears", &[], &wav(30_100)).await).await;
    assert_eq!((status, &error["param"]), (400, &json!("file")));
    assert!(error["message"].as_str().is_some_and(|text| text.contains("30.100 s")), "{error}");
    assert_eq!(house.available().await, before, "free");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_may_have_the_last_byte_that_is_allowed_and_no_more() {
    let house = house().await;
    let most = 25 << 20;
    // Loud enough in bytes: 8 channels at 384 kHz.
    let mut file = wav_of(1, 8, 384_000, 16, 1_638_397);
    assert!(file.len() < most);
    file.resize(most, 0);
    for (fields, length, status) in [
        (vec![("model", "short-ears"), ("file", "")], most - 1, 200),
        (vec![("model", "short-ears"), ("file", "")], most, 200),
        (vec![("model", "short-ears"), ("file", "")], most + 1, 413),
        (vec![("file", ""), ("model", "short-ears")], most, 200),
        (vec![("file", ""), ("model", "short-ears")], most + 1, 413),
    ] {
        file.resize(length, 0);
        let body = form(&fields, "a.wav", &file);
        let reply = post(&house, "/v1/audio/transcriptions", KIND, body).send().await.expect("a reply");
        assert_eq!(reply.status(), status, "{length} bytes, {fields:?}");
        if status == 413 {
            assert_eq!(error_of(reply).await.1["param"], "file");
        }
    }
    assert_eq!(house.sim.received().len(), 3);
}

/// MM25: a file was what its name said.
#[tokio::test(flavor = "multi_thread")]
async fn formats_go_by_content_and_never_by_name() {
    let house = house().await;
    let dir = tempfile::tempdir().expect("a folder");
    let made = |name: &str, options: &str| made(dir.path(), name, "1.5", options);
    let (mp3, opus) = (made("a.mp3", "-c:a libmp3lame"), made("a.opus", "-c:a libopus"));
    let (vorbis, webm) = (made("a.ogg", "-c:a libvorbis"), made("a.webm", "-c:a libopus"));
    for (file, name, fits, ending) in [
        (&wav(1_500), "song.mp3", true, "wav"),
        (&opus, "blob", true, "ogg"),
        (&vorbis, "song.mp3", true, "ogg"),
        (&mp3, "song.wav", false, ""),
        (&webm, "song.ogg", false, ""),
        (&wav_of(1, 1, 8_000, 24, 12_000), "a.wav", false, ""),
        (&wav_of(3, 1, 8_000, 32, 12_000), "a.wav", false, ""),
        (&wav_of(7, 1, 8_000, 8, 12_000), "a.wav", false, ""),
    ] {
        let seen = house.sim.received().len();
        let body = form(&[("model", "bigmodel-streaming"), ("stream", "true"), ("file", "")], name, file);
        let reply = post(&house, "/v1/audio/transcriptions", KIND, body).send().await.expect("a reply");
        if fits {
            // A streaming name, and all of the text at once.
            assert_eq!(
                (reply.status().as_u16(), &reply.headers()["x-tollgate-dropped"]),
                (200, &"stream".parse().unwrap())
            );
            assert_eq!(reply.headers()["content-type"], "application/json");
            let received = house.sim.received().pop().expect("a request");
            assert_eq!(sent(&received.body).1, format!("audio.{ending}"), "{name}");
        } else {
            let (status, error) = error_of(reply).await;
            assert_eq!((status, &error["param"]), (400, &json!("file")), "{name}");
            assert_eq!(house.sim.received().len(), seen, "nothing was sent");
        }
    }
}

/// MM25: every container that ffmpeg makes, through the endpoint: charged as long as it is,
/// whatever it declares of itself.
#[tokio::test(flavor = "multi_thread")]
async fn every_container_is_charged_by_its_packets() {
    let house = house().await;
    let dir = tempfile::tempdir().expect("a folder");
    for (name, options) in [
        ("a.wav", "-c:a pcm_s16le"),
        ("a.mp3", "-c:a libmp3lame -q:a 4"),
        ("plain.mp3", "-c:a libmp3lame -q:a 4 -write_xing 0"),
        ("a.aac", "-c:a aac"),
        ("a.m4a", "-c:a aac"),
        ("pieces.mp4", "-c:a aac -movflags +frag_keyframe+empty_moov"),
        ("a.flac", "-c:a flac"),
        ("a.ogg", "-c:a libvorbis"),
        ("a.opus", "-c:a libopus"),
        ("a.webm", "-c:a libopus"),
        ("a.mkv", "-c:a aac"),
    ] {
        let file = made(dir.path(), name, "2.5", options);
        assert_eq!(charged(&house, &file).await, 3, "{name}");
        assert!(charged(&house, &file[..file.len() * 7 / 10]).await <= 3, "{name}, cut");
    }
    let honest = made(dir.path(), "lying.m4a", "4.5", "-c:a aac");
    let mut lying = honest.clone();
    for table in [&b"mvhd"[..], b"mdhd"] {
        let at = honest.windows(4).position(|window| window == table).expect("a table");
        lying[at + 20..at + 24].copy_from_slice(&[0, 0, 0, 1]);
    }
    assert_eq!(charged(&house, &lying).await, 5, "a header that says nearly nothing");
    let mut endless = wav(2_500);
    endless[40..44].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(charged(&house, &endless).await, 3);
    endless[40..44].copy_from_slice(&[0; 4]);
    assert_eq!(charged(&house, &endless).await, 3, "a file without a length is not free");
}

/// The seconds that a file is charged for.
async fn charged(house: &House, file: &[u8]) -> u64 {
    let reply = transcribe(house, "whisper", &[], file).await;
    let status = reply.status();
    if status != 200 {
        // Cut so early that nothing can be heard.
        assert_eq!(error_of(reply).await.1["param"], "file");
        return 0;
    }
    row_of(house, &reply).await.counters.seconds
}

/// MM24: what says of itself that it is endless is measured, or refused.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_measured_is_refused_and_free() {
    let house = house().await;
    let text = "No frame begins here. ".repeat(5_000);
    let mut huge = wav(10);
    // 2^32 samples a second, and none of the rates there are.
    huge[24..28].copy_from_slice(&u32::MAX.to_le_bytes());
    for (file, what) in [
        (&b""[..], "nothing"),
        (b"RIFF", "a beginning"),
        (text.as_bytes(), "text"),
        (&wav(1_000)[..44], "no sound"),
        (&huge, "an absurd rate"),
        (b"OggS\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff", "a broken page"),
        (&[0xff; 50_000], "noise"),
    ] {
        let (status, error) = error_of(transcribe(&house, "whisper", &[], file).await).await;
        assert_eq!(
            (status, &error["param"], &error["code"]),
            (400, &json!("file"), &json!("invalid_parameter")),
            "{what}"
        );
    }
    assert!(house.sim.received().is_empty() && house.all_rows().await.is_empty());
}
