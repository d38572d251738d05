//! Lengths of real files, made here by ffmpeg, held to what ffmpeg's own decoders make of them; and
//! of files that lie.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tollgate_media::audio::{AudioCodec, AudioMeter, Container, Measured, Unmeasured};

/// A folder that is gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tollgate-audio-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    /// Makes a file from sound of this length, with ffmpeg's options for the output.
    fn make(&self, name: &str, seconds: &str, options: &str) -> Vec<u8> {
        self.make_of(&format!("sine=frequency=440:sample_rate=44100:duration={seconds}"), name, options)
    }

    fn make_of(&self, source: &str, name: &str, options: &str) -> Vec<u8> {
        let path = self.0.join(name);
        let mut command = Command::new("ffmpeg");
        command.args(["-v", "error", "-y", "-f", "lavfi", "-i", source]).args(options.split_whitespace()).arg(&path);
        let done = command.stdin(Stdio::null()).output().expect("ffmpeg is installed (scripts/setup test)");
        assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
        fs::read(&path).expect("the file that ffmpeg made")
    }

    /// Milliseconds of sound that ffmpeg decodes from these bytes.
    fn heard(&self, name: &str, bytes: &[u8]) -> u64 {
        let path = self.0.join(format!("heard-{name}"));
        fs::write(&path, bytes).expect("written");
        (decoded(&path) * 1000.0) as u64
    }

    /// Milliseconds of sound in the packets of a file that was made here.
    fn probed(&self, name: &str) -> u64 {
        (probed(&self.0.join(name)) * 1000.0) as u64
    }

    /// The same as is measured, within a packet or two at either end.
    fn hears(&self, name: &str, bytes: &[u8]) {
        let (heard, found) = (self.heard(name, bytes), millis(bytes).expect("a length"));
        assert!(found.abs_diff(heard) <= 130, "{name}: {found} ms, decoded {heard}");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Seconds of sound that ffmpeg decodes from the first audio track.
fn decoded(path: &Path) -> f64 {
    let done = Command::new("ffmpeg")
        .args(["-v", "quiet", "-i"])
        .arg(path)
        .args(["-map", "0:a:0", "-f", "s16le", "-ac", "1", "-ar", "48000", "-"])
        .stdin(Stdio::null())
        .output()
        .expect("ffmpeg is installed (scripts/setup test)");
    done.stdout.len() as f64 / 2.0 / 48_000.0
}

/// How long the packets of a file play by ffprobe, which decodes nothing, before what a player
/// leaves out at both ends: by their durations, else from the first of their times to the last and
/// as far again as there is between the last two.
fn probed(path: &Path) -> f64 {
    let mut command = Command::new("ffprobe");
    command.args(["-v", "error", "-select_streams", "a:0", "-show_entries", "packet=pts_time,duration_time"]);
    let done = command.args(["-of", "csv=p=0"]).arg(path).output().expect("ffprobe is installed (scripts/setup test)");
    let text = String::from_utf8(done.stdout).expect("text");
    let column = |at: usize| -> Option<Vec<f64>> {
        let lines = text.lines().filter(|line| !line.is_empty());
        lines.map(|line| line.split(',').nth(at)?.trim().parse().ok()).collect()
    };
    // Of a Vorbis file with one page of audio it says that it plays for more than a day.
    let durations = column(1).map(|all| all.iter().sum::<f64>()).filter(|seconds| *seconds < 86_400.0);
    let by_times = || {
        let times = column(0)?;
        let [before, last] = *times.last_chunk::<2>()?;
        Some(2.0 * last - before - times[0])
    };
    durations.or_else(by_times).unwrap_or_else(|| panic!("ffprobe tells nothing of {path:?}: {text}"))
}

fn measure_in(bytes: &[u8], piece: usize) -> Result<Measured, Unmeasured> {
    let mut meter = AudioMeter::default();
    bytes.chunks(piece).for_each(|piece| meter.feed(piece));
    meter.finish()
}

/// The same in whatever pieces the file comes.
fn measure(bytes: &[u8]) -> Result<Measured, Unmeasured> {
    let whole = measure_in(bytes, usize::MAX >> 1);
    for piece in [1, 7, 4096] {
        if piece > 1 || bytes.len() < 2_000_000 {
            assert_eq!(
                measure_in(bytes, piece),
                whole,
                "in pieces of {piece}, {} bytes: {:?}",
                bytes.len(),
                &bytes[..40]
            );
        }
    }
    whole
}

const LENGTHS: [&str; 4] = ["0.2", "1", "1.001", "12.345"];

/// What lies or is damaged has tests of its own below.
const _: () = assert!(FORMS.len() * LENGTHS.len() >= 60, "sixty real files at least");

/// Name, ffmpeg's options, container, codec, and how many milliseconds more than the source it may
/// have.
const FORMS: &[(&str, &str, Container, AudioCodec, u64)] = &[
    ("s16.wav", "-c:a pcm_s16le", Container::Wav, PCM16, 0),
    ("s24.wav", "-c:a pcm_s24le", Container::Wav, AudioCodec::Pcm { bits: 24, float: false }, 0),
    ("f32.wav", "-c:a pcm_f32le", Container::Wav, AudioCodec::Pcm { bits: 32, float: true }, 0),
    ("u8.wav", "-c:a pcm_u8 -ar 11025", Container::Wav, AudioCodec::Pcm { bits: 8, float: false }, 1),
    ("alaw.wav", "-c:a pcm_alaw -ar 8000", Container::Wav, AudioCodec::ALaw, 1),
    ("mulaw.wav", "-c:a pcm_mulaw -ar 8000", Container::Wav, AudioCodec::MuLaw, 1),
    ("rf64.wav", "-c:a pcm_s16le -rf64 always -ac 2", Container::Wav, PCM16, 0),
    ("cbr.mp3", "-c:a libmp3lame -b:a 64k", Container::Mp3, AudioCodec::Mp3, 1),
    ("vbr.mp3", "-c:a libmp3lame -q:a 4 -ac 2", Container::Mp3, AudioCodec::Mp3, 1),
    ("plain.mp3", "-c:a libmp3lame -q:a 4 -write_xing 0 -id3v2_version 0", Container::Mp3, AudioCodec::Mp3, 80),
    ("slow.mp3", "-c:a libmp3lame -ar 16000 -b:a 32k", Container::Mp3, AudioCodec::Mp3, 1),
    ("layer2.mp3", "-c:a mp2 -b:a 128k -f mp2", Container::Mp3, AudioCodec::Mp3, 60),
    ("adts.aac", "-c:a aac", Container::Adts, AudioCodec::Aac, 60),
    ("aac.m4a", "-c:a aac", Container::Mp4, AudioCodec::Aac, 1),
    ("front.m4a", "-c:a aac -movflags +faststart", Container::Mp4, AudioCodec::Aac, 1),
    (
        "pieces.mp4",
        "-c:a aac -movflags +frag_keyframe+empty_moov -frag_duration 500000",
        Container::Mp4,
        AudioCodec::Aac,
        60,
    ),
    ("alac.m4a", "-c:a alac", Container::Mp4, AudioCodec::Other, 1),
    ("mp3.mp4", "-c:a libmp3lame -f mp4", Container::Mp4, AudioCodec::Mp3, 60),
    ("opus.mp4", "-c:a libopus -ar 48000 -f mp4", Container::Mp4, AudioCodec::Opus, 30),
    ("plain.flac", "-c:a flac", Container::Flac, AudioCodec::Flac, 0),
    ("stereo.flac", "-c:a flac -ac 2 -ar 48000 -compression_level 12", Container::Flac, AudioCodec::Flac, 1),
    ("bits24.flac", "-c:a flac -sample_fmt s32", Container::Flac, AudioCodec::Flac, 0),
    ("opus.ogg", "-c:a libopus", Container::Ogg, AudioCodec::Opus, 1),
    ("long.opus", "-c:a libopus -frame_duration 60 -vbr off", Container::Ogg, AudioCodec::Opus, 1),
    ("short.opus", "-c:a libopus -frame_duration 2.5 -application lowdelay", Container::Ogg, AudioCodec::Opus, 1),
    ("vorbis.ogg", "-c:a libvorbis", Container::Ogg, AudioCodec::Vorbis, 1),
    ("flac.oga", "-c:a flac -f ogg", Container::Ogg, AudioCodec::Flac, 0),
    ("opus.webm", "-c:a libopus", Container::WebM, AudioCodec::Opus, 21),
    ("vorbis.webm", "-c:a libvorbis", Container::WebM, AudioCodec::Vorbis, 60),
    ("live.webm", "-c:a libopus -live 1 -f webm", Container::WebM, AudioCodec::Opus, 21),
    ("aac.mkv", "-c:a aac", Container::Matroska, AudioCodec::Aac, 60),
    ("flac.mkv", "-c:a flac", Container::Matroska, AudioCodec::Flac, 0),
    ("pcm.mkv", "-c:a pcm_s16le", Container::Matroska, PCM16, 0),
    ("mp3.mkv", "-c:a libmp3lame", Container::Matroska, AudioCodec::Mp3, 80),
];

const PCM16: AudioCodec = AudioCodec::Pcm { bits: 16, float: false };

/// Files in these containers are as long as what is decoded from them.
fn as_decoded(containers: &[Container]) {
    let folder = Folder::new(&format!("{containers:?}").replace(|one: char| !one.is_alphanumeric(), ""));
    let mut wrong = Vec::new();
    for (name, options, container, codec, more) in FORMS.iter().filter(|form| containers.contains(&form.2)) {
        for seconds in LENGTHS {
            let bytes = folder.make(name, seconds, options);
            let truth = (seconds.parse::<f64>().unwrap() * 1000.0).round() as u64;
            let heard = (decoded(&folder.0.join(name)) * 1000.0) as u64;
            let packets = folder.probed(name);
            let found = measure(&bytes);
            let good = found.is_ok_and(|found| {
                let millis = found.length.millis();
                (found.container, found.codec) == (*container, *codec)
                    && !found.video
                    && (truth..=truth + more).contains(&millis)
                    && millis.abs_diff(heard) <= 60
                    && millis.abs_diff(packets) <= 130
            });
            if !good {
                let millis = found.map(|found| found.length.millis());
                wrong
                    .push(format!("{name} of {seconds} s: {found:?} {millis:?} ms, decoded {heard}, probed {packets}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn wav_files_are_as_long_as_what_is_decoded_from_them() {
    as_decoded(&[Container::Wav]);
}

#[test]
fn mp3_and_aac_files_are_as_long_as_what_is_decoded_from_them() {
    as_decoded(&[Container::Mp3, Container::Adts]);
}

#[test]
fn mp4_files_are_as_long_as_what_is_decoded_from_them() {
    as_decoded(&[Container::Mp4]);
}

#[test]
fn flac_and_ogg_files_are_as_long_as_what_is_decoded_from_them() {
    as_decoded(&[Container::Flac, Container::Ogg]);
}

#[test]
fn matroska_and_webm_files_are_as_long_as_what_is_decoded_from_them() {
    as_decoded(&[Container::Matroska, Container::WebM]);
}

/// Cut anywhere, a file is as long as what can still be decoded from it. An MP4 file with its
/// tables in front is as long as they say: sizes that say otherwise can be made up.
#[test]
fn a_cut_file_is_as_long_as_what_is_left_of_it() {
    let folder = Folder::new("cut");
    let mut wrong = Vec::new();
    for (name, options, ..) in FORMS {
        let whole = folder.make(name, "6", options);
        for part in [30, 85] {
            let bytes = &whole[..whole.len() * part / 100];
            let heard = folder.heard(name, bytes);
            match measure_in(bytes, usize::MAX >> 1).map(|found| found.length.millis()) {
                Ok(6_000) if *name == "front.m4a" => {}
                Ok(millis) if millis.abs_diff(heard) <= 600 => {}
                Err(_) if heard == 0 => {}
                found => wrong.push(format!("{name}, {part} of a hundred: {found:?}, decoded {heard} ms")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The place of these bytes.
fn place(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).position(|window| window == what).expect("it is there")
}

fn millis(bytes: &[u8]) -> Result<u64, Unmeasured> {
    measure(bytes).map(|found| found.length.millis())
}

#[test]
fn a_wav_file_is_as_long_as_its_bytes_whatever_it_declares() {
    let folder = Folder::new("wav");
    let honest = folder.make("a.wav", "2", "-c:a pcm_s16le -bitexact");
    let data = place(&honest, b"data");
    let sized = |size: u32| {
        let mut bytes = honest.clone();
        bytes[data + 4..data + 8].copy_from_slice(&size.to_le_bytes());
        bytes
    };
    for size in [0, u32::MAX, 176_400, 176_402, 400_000_000] {
        assert_eq!(millis(&sized(size)), Ok(2000), "{size}");
    }
    folder.hears("a.wav", &sized(0));
    folder.hears("a.wav", &sized(u32::MAX));
    folder.hears("a.wav", &sized(400_000_000));
    folder.hears("a.wav", &honest[..data + 8 + 88_200]);
    folder.hears("a.wav", &[&honest[..], b"LIST\x04\0\0\0abcd"].concat());
    // Sound after the declared end is sound, a chunk after it is not, and one that is longer than
    // the file is none.
    assert_eq!(millis(&sized(88_200)), Ok(2000));
    assert_eq!(millis(&[&honest[..], b"LIST\x04\0\0\0abcd"].concat()), Ok(2000));
    let cut = [&honest[..], b"LIST\xff\xff\xff\0", &[0; 88_192]].concat();
    assert_eq!(millis(&cut), Ok(3000));
    assert_eq!(millis(&honest[..data + 8 + 88_200]), Ok(1000));
    for (at, bytes, why) in [
        (20, &[2, 0][..], Unmeasured::Unsupported),
        (22, &[0, 0], Unmeasured::Broken),
        (24, &[1, 0, 0, 0], Unmeasured::Broken),
        (32, &[9, 0], Unmeasured::Broken),
    ] {
        let mut bad = honest.clone();
        bad[at..at + bytes.len()].copy_from_slice(bytes);
        assert_eq!(millis(&bad), Err(why), "{bytes:?} at {at}");
    }
    assert_eq!(millis(&honest[..data + 8]), Err(Unmeasured::Silent));
    assert_eq!(millis(&honest[..30]), Err(Unmeasured::Broken));
}

#[test]
fn an_mp3_file_is_as_long_as_its_frames_whatever_it_declares() {
    let folder = Folder::new("mp3");
    let honest = folder.make("a.mp3", "3", "-c:a libmp3lame -b:a 64k -id3v2_version 0");
    let mut lying = honest.clone();
    let table = place(&lying, b"Info");
    lying[table + 8..table + 12].copy_from_slice(&7u32.to_be_bytes());
    assert_eq!(millis(&lying), Ok(3000));
    // Joined files count in full, with a large picture between them too.
    let tag = [&b"ID3\x04\0\0\x01\x40\0\0"[..], &vec![0xff; (1 << 21) + (0x40 << 14)]].concat();
    assert_eq!(millis(&[&honest[..], &honest].concat()).map(|both| both / 100), Ok(60));
    assert_eq!(millis(&[&tag[..], &honest, &tag, &honest].concat()), Ok(6000));
    let end = [&honest[..], b"TAG", &[b' '; 125]].concat();
    assert_eq!(millis(&end), Ok(3000));
    let half = millis(&honest[..honest.len() / 2]).unwrap();
    assert!((1400..1600).contains(&half), "{half}");
    // Noise in the middle is passed over.
    let noisy = [&honest[..honest.len() / 2], &[0x55; 3000], &honest[honest.len() / 2..]].concat();
    assert!((2900..=3100).contains(&millis(&noisy).unwrap()));
    let halved = &honest[..honest.len() / 2];
    for file in [&lying[..], &[&honest[..], &honest].concat(), &end, halved, &noisy] {
        folder.hears("a.mp3", file);
    }
}

/// MM24: the last time that a file claims was billed, and it was 2^63 - 1.
#[test]
fn times_that_an_ogg_file_claims_are_good_for_its_last_packet_only() {
    let folder = Folder::new("ogg");
    for (name, options) in
        [("a.opus", "-c:a libopus -page_duration 200000"), ("a.ogg", "-c:a libvorbis -page_duration 200000")]
    {
        let honest = folder.make(name, "5", options);
        let pages: Vec<usize> = (0..honest.len() - 4).filter(|at| &honest[*at..*at + 4] == b"OggS").collect();
        assert!(pages.len() > 10);
        for claimed in [0, i64::MAX] {
            let mut lying = honest.clone();
            for page in &pages {
                lying[page + 6..page + 14].copy_from_slice(&claimed.to_le_bytes());
            }
            let found = millis(&lying).unwrap();
            assert!((5000..5100).contains(&found), "{name}: {found} by {claimed}");
        }
        // One file after another, each with its own beginning.
        assert_eq!(millis(&[&honest[..], &honest].concat()), Ok(10_000), "{name}");
        // Damage costs a page, not the rest.
        let mut damaged = honest.clone();
        folder.hears(name, &honest);
        folder.hears(name, &[&honest[..], &honest].concat());
        damaged[pages[4]] = b'X';
        assert!((4500..5000).contains(&millis(&damaged).unwrap()), "{name}");
    }
}

/// MM25: the length went by the header of a file.
#[test]
fn tables_of_an_mp4_file_that_make_it_shorter_are_not_believed() {
    let folder = Folder::new("mp4");
    let honest = folder.make("a.m4a", "12.345", "-c:a aac");
    let (stts, mvhd, mdhd) = (place(&honest, b"stts"), place(&honest, b"mvhd"), place(&honest, b"mdhd"));
    let mut lying = honest.clone();
    for entry in 0..u32::from_be_bytes(honest[stts + 8..stts + 12].try_into().unwrap()) as usize {
        lying[stts + 16 + 8 * entry..stts + 20 + 8 * entry].copy_from_slice(&[0, 0, 0, 1]);
    }
    let found = millis(&lying).unwrap();
    assert!((11_500..12_345).contains(&found), "{found}");
    let mut short = honest.clone();
    short[mvhd + 20..mvhd + 24].copy_from_slice(&[0, 0, 0, 1]);
    short[mdhd + 20..mdhd + 24].copy_from_slice(&[0, 0, 0, 1]);
    assert_eq!(millis(&short), Ok(12_345));
    // An edit that would cut most of the sound away.
    let elst = place(&honest, b"elst");
    let mut edited = honest.clone();
    edited[elst + 12..elst + 16].copy_from_slice(&[0, 0, 0, 1]);
    assert!((12_345..12_400).contains(&millis(&edited).unwrap()));
}

#[test]
fn a_flac_file_is_as_long_as_its_frames_whatever_it_declares() {
    let folder = Folder::new("flac");
    let honest = folder.make("a.flac", "12.345", "-c:a flac");
    for declared in [[0; 4], [0xff; 4]] {
        let mut lying = honest.clone();
        lying[22..26].copy_from_slice(&declared);
        assert_eq!(millis(&lying), Ok(12_345));
    }
    let mut damaged = honest.clone();
    let middle = damaged.len() / 2;
    damaged[middle..middle + 100].fill(0xaa);
    assert_eq!(millis(&damaged), Ok(12_345));
    folder.hears("a.flac", &damaged);
    folder.hears("a.flac", &honest[..middle]);
    let half = millis(&honest[..middle]).unwrap();
    assert!((5_500..7_000).contains(&half), "{half}");
}

#[test]
fn sound_beside_pictures_is_measured_and_pictures_alone_are_silent() {
    let folder = Folder::new("video");
    let pictures = "-f lavfi -i testsrc=duration=3:size=64x64:rate=10";
    for (name, options) in [
        ("a.mp4", "-c:v mpeg4 -c:a aac"),
        ("a.webm", "-c:v libvpx -c:a libopus"),
        ("a.mkv", "-c:v mpeg4 -c:a aac"),
        ("a.mov", "-c:v mpeg4 -c:a aac"),
    ] {
        let both = folder.make(name, "2", &format!("{pictures} {options}"));
        let (found, packets) = (measure(&both).unwrap(), folder.probed(name));
        let millis = found.length.millis();
        assert!(found.video && (2000..2070).contains(&millis), "{name}: {found:?}");
        assert!(millis.abs_diff(packets) <= 130, "{name}: {millis} ms, ffprobe says {packets}");
        folder.hears(name, &both);
        let silent = folder.make(name, "2", &format!("{pictures} -map 1:v {options}"));
        assert_eq!(measure(&silent), Err(Unmeasured::Silent), "{name}");
    }
}

#[test]
fn three_hours_of_silence_are_three_hours() {
    let folder = Folder::new("long");
    for (name, options) in [("a.flac", "-c:a flac"), ("a.mp3", "-c:a libmp3lame -b:a 8k")] {
        let bytes = folder.make_of("anullsrc=r=8000:cl=mono:d=10800", name, options);
        let (found, packets) = (measure_in(&bytes, 65_536).unwrap().length, folder.probed(name));
        assert!((10_800..=10_801).contains(&found.whole_seconds()), "{name}: {}", found.millis());
        assert!(found.millis().abs_diff(packets) <= 200, "{name}: {} ms, ffprobe says {packets}", found.millis());
    }
}

#[test]
fn what_is_no_audio_is_unknown() {
    for bytes in
        [&b""[..], b"R", b"hello", &[0; 100_000], &[0xff; 100_000], b"RIFF\0\0\0\0AVI LIST", b"FORM\0\0\0\0AIFFCOMM"]
    {
        assert!(measure(bytes).is_err(), "{:?}", &bytes[..bytes.len().min(20)]);
    }
    let text = "No frame begins here. ".repeat(10_000);
    assert_eq!(measure(text.as_bytes()), Err(Unmeasured::Unknown));
}

/// MM24: a decoder reported 2^63 frames, and a recording was billed for millions of years.
#[test]
fn damaged_files_end_and_never_last_longer_than_a_day() {
    let folder = Folder::new("damaged");
    let mut seed = 7u64;
    let mut random = move |most: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % most as u64) as usize
    };
    for (name, options, ..) in FORMS {
        let honest = folder.make(name, "1", options);
        for _ in 0..60 {
            let mut bytes = honest.clone();
            for _ in 0..=random(12) {
                let at = random(bytes.len());
                bytes[at] = [0, 0xff, 0x7f, random(256) as u8][random(4)];
            }
            bytes.truncate(random(bytes.len()) + 1);
            if let Ok(found) = measure(&bytes) {
                assert!(found.length.whole_seconds() <= 86_400, "{name}");
            }
        }
    }
}
