//! Recordings made to cost much: what they take of work and of memory is counted, and has a bound
//! by their bytes. A bound on time would depend on the machine.

use std::process::{Command, Stdio};
use tollgate_media::audio::{AudioMeter, Measured, MeterWork, Unmeasured};

/// The largest piece that is held, what is shown beside it, as a vector grows; and the headers of
/// all tracks.
const MOST_HELD: usize = 2 * ((4 << 20) + (16 << 10)) + (3 << 20);

/// Measures a file in pieces of each size, and what that costs.
fn bounded(name: &str, bytes: &[u8]) -> Result<Measured, Unmeasured> {
    let mut found = None;
    for piece in [1, 1_000, 16 << 10, 64 << 10, usize::MAX >> 1] {
        // In pieces of one byte each byte is a step at most: some are enough.
        let bytes = if piece == 1 { &bytes[..bytes.len().min(256 << 10)] } else { bytes };
        let mut meter = AudioMeter::default();
        bytes.chunks(piece).for_each(|piece| meter.feed(piece));
        let MeterWork { steps, moved, held } = meter.work;
        let size = bytes.len() as u64;
        assert!(steps <= size + 100, "{name} in pieces of {piece}: {steps} steps for {size} bytes");
        assert!(moved <= 4 * size + (64 << 10), "{name} in pieces of {piece}: {moved} of {size} bytes were moved");
        assert!(held <= MOST_HELD, "{name} in pieces of {piece}: {held} bytes were held");
        let result = meter.finish();
        if piece > 1 {
            assert_eq!(*found.get_or_insert(result), result, "{name} in pieces of {piece}");
        }
    }
    found.expect("it was measured")
}

/// A second of sound.
fn made(ending: &str, options: &str) -> Vec<u8> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=44100:duration=1"]);
    let done = command.args(options.split_whitespace()).args(["-f", ending, "-"]).stdin(Stdio::null()).output();
    let done = done.expect("ffmpeg is installed (scripts/setup test)");
    assert!(done.status.success(), "{ending}: {}", String::from_utf8_lossy(&done.stderr));
    done.stdout
}

fn noise(bytes: usize) -> Vec<u8> {
    let mut seed = 7u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        u8::try_from(seed % 256).expect("a byte")
    };
    (0..bytes).map(|_| random()).collect()
}

/// Behind a frame that is found, noise goes on for as long as a file may.
#[test]
fn noise_behind_some_sound_is_looked_through_once() {
    for (ending, options) in [
        ("mp3", "-c:a libmp3lame"),
        ("adts", "-c:a aac"),
        ("flac", "-c:a flac"),
        ("ogg", "-c:a libvorbis"),
        ("wav", "-c:a pcm_s16le"),
        ("webm", "-c:a libopus"),
        ("matroska", "-c:a aac"),
        ("mp4", "-c:a aac -movflags +frag_keyframe+empty_moov"),
    ] {
        let sound = made(ending, options);
        for behind in [noise(1 << 20), vec![0xff; 1 << 20], vec![0; 1 << 20], sound[..sound.len() / 2].repeat(8)] {
            let _ = bounded(ending, &[&sound[..], &behind].concat());
        }
        // What looks like a beginning over and over.
        for start in [2, 4, 8, 12, 40] {
            let _ = bounded(ending, &[&sound[..], &sound[..start].repeat(20_000)].concat());
        }
    }
}

fn boxed(kind: &[u8; 4], inside: &[u8]) -> Vec<u8> {
    let size = u32::try_from(8 + inside.len()).expect("small");
    [&size.to_be_bytes()[..], kind, inside].concat()
}

#[test]
fn boxes_of_an_mp4_file_are_read_once() {
    let head = boxed(b"ftyp", b"isom\0\0\0\0");
    let table = |kind| boxed(kind, &vec![0xff; (4 << 20) - 100]);
    for (name, body) in [
        ("empty boxes", boxed(b"free", b"").repeat(100_000)),
        ("empty rooms", boxed(b"moov", b"").repeat(100_000)),
        ("large tables", [boxed(b"trak", b""), table(b"stts"), table(b"trun"), table(b"stts")].concat()),
        ("a table that does not come", [&(4u32 << 20).to_be_bytes()[..], b"stts", &[0; 1 << 20]].concat()),
        ("tracks", boxed(b"trak", b"").repeat(1_000)),
        ("sizes that are none", [0, 0, 0, 1, b'f', b'r', b'e', b'e', 0, 0, 0, 0, 0, 0, 0, 16].repeat(100_000)),
    ] {
        let _ = bounded(name, &[&head[..], &body].concat());
    }
}

/// The name of an element, its size in four bytes, and what is in it.
fn element(id: &[u8], inside: &[u8]) -> Vec<u8> {
    let size = 0x1000_0000 | u32::try_from(inside.len()).expect("small");
    [id, &size.to_be_bytes(), inside].concat()
}

/// Each header alone is one that may be; all of them together would be the whole file in memory.
#[test]
fn headers_of_many_tracks_are_not_kept() {
    let start = element(&[0x1a, 0x45, 0xdf, 0xa3], &element(&[0x42, 0x82], b"webm"));
    let large = vec![7; 500 << 10];
    let track =
        [element(&[0xae], b""), element(&[0x83], &[2]), element(&[0x86], &large), element(&[0x63, 0xa2], &large)];
    let track = track.concat();
    assert_eq!(bounded("headers of 60 tracks", &[&start[..], &track.repeat(60)].concat()), Err(Unmeasured::Broken));
    let one = element(&[0x63, 0xa2], &large).repeat(60);
    let again = [&start[..], &element(&[0xae], b""), &element(&[0x83], &[2]), &one].concat();
    let _ = bounded("the same header again", &again);
    let _ = bounded("lost elements", &[&start[..], &[0x01; 1 << 20]].concat());
    // Laced: 256 frames of nothing in each block.
    let block = element(&[0xa3], &[0x81, 0, 0, 0x04, 0xff]);
    let sound = [element(&[0xae], b""), element(&[0xd7], &[1]), element(&[0x83], &[2]), element(&[0x86], b"A_OPUS")];
    let laced = bounded("empty frames", &[&start[..], &sound.concat(), &block.repeat(50_000)].concat());
    assert_eq!(laced, Err(Unmeasured::TooLong), "more packets than an honest file has");
}

/// A page of an Ogg file with pieces of 255 bytes, so that its packet goes on.
fn page(flags: u8, serial: u32, pieces: &[u8], body: &[u8]) -> Vec<u8> {
    let count = [u8::try_from(pieces.len()).expect("few")];
    [b"OggS\0", &[flags][..], &[0; 8], &serial.to_le_bytes(), &[0; 8], &count, pieces, body].concat()
}

/// The set-up of a Vorbis stream is kept until it is whole: here it never is, in any of them.
#[test]
fn set_ups_of_many_streams_are_not_kept() {
    let mut first = b"\x01vorbis\0\0\0\0\x01\x44\xac\0\0".to_vec();
    first.extend([0; 12]);
    first.extend([0xb8, 1]);
    let mut file = Vec::new();
    for serial in 0..200 {
        let length = u8::try_from(first.len()).expect("short");
        file.extend(page(2, serial, &[length], &first));
        let body = [&b"\x05vorbis"[..], &[0; 255 * 255 - 7]].concat();
        file.extend(page(0, serial, &[255; 255], &body));
        file.extend(page(1, serial, &[255; 255], &[0; 255 * 255]));
    }
    assert_eq!(bounded("set-ups that do not end", &file), Err(Unmeasured::Broken));
    let _ = bounded("pages without anything", &page(2, 1, &[], b"").repeat(100_000));
    let _ = bounded("pages that go on", &page(1, 1, &[255; 255], &[0; 255 * 255]).repeat(50));
}

#[test]
fn tags_and_chunks_are_passed_over() {
    let sound = made("mp3", "-c:a libmp3lame -id3v2_version 0");
    let tag = b"ID3\x04\0\0\0\0\0\0".repeat(200_000);
    let _ = bounded("empty tags before a song", &[&tag[..], &sound].concat());
    let _ = bounded("empty tags behind a song", &[&sound[..], &tag].concat());
    let _ = bounded("tags at the end", &[&sound[..], &b"TAG".repeat(300_000)].concat());
    let wav = made("wav", "-c:a pcm_s16le");
    let chunk = b"LIST\0\0\0\0".repeat(200_000);
    let _ = bounded("empty chunks behind the sound", &[&wav[..], &chunk].concat());
    let _ = bounded("empty chunks before the sound", &[&wav[..36], &chunk, &wav[36..]].concat());
}
