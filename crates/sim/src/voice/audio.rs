//! Small audio files that play: samples exactly, and of the compressed formats the smallest silent
//! frame, repeated. Each format comes in pieces that a real encoder would send one by one.

/// Samples in a second of everything that is made here but Opus, which has 48,000.
pub(super) const RATE: u32 = 24_000;

/// The formats, by the names of OpenAI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Mp3,
    Opus,
    Aac,
    Flac,
    Wav,
    Pcm,
}

impl Format {
    pub(super) fn named(name: &str) -> Option<Format> {
        Some(match name {
            "mp3" => Format::Mp3,
            "opus" => Format::Opus,
            "aac" => Format::Aac,
            "flac" => Format::Flac,
            "wav" => Format::Wav,
            "pcm" => Format::Pcm,
            _ => return None,
        })
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Format::Mp3 => "audio/mpeg",
            // Not what the standard says, and seen all the same.
            Format::Opus => "audio/opus",
            Format::Aac => "audio/aac",
            Format::Flac => "audio/flac",
            Format::Wav => "audio/wav",
            Format::Pcm => "audio/pcm",
        }
    }
}

/// A file that plays for about so long, at the nearest whole frame.
pub(super) fn file(format: Format, rate: u32, ms: u64) -> Vec<u8> {
    let samples = ms * u64::from(rate) / 1000;
    let frames = |length: u64, rate: u64| ((ms * rate + length * 500) / (length * 1000)).max(1);
    match format {
        Format::Pcm => tone(rate, samples),
        Format::Wav => [wav_header(rate).to_vec(), tone(rate, samples)].concat(),
        Format::Mp3 => MP3.iter().chain(&[0; 92]).copied().collect::<Vec<u8>>().repeat(count(frames(576, 24_000))),
        Format::Aac => AAC.repeat(count(frames(1024, 24_000))),
        Format::Flac => flac(frames(1152, 24_000)),
        Format::Opus => opus(frames(960, 48_000)),
    }
}

fn count(frames: u64) -> usize {
    usize::try_from(frames).unwrap_or(usize::MAX)
}

/// MPEG-2 layer III, 32 kbit/s, 24 kHz, one channel: 96 bytes of which the rest is zeros, which is
/// silence. 576 samples.
const MP3: [u8; 4] = [0xff, 0xf3, 0x44, 0xc4];

/// ADTS header (AAC-LC, 24 kHz, one channel, 13 bytes) and one silent channel. 1024 samples.
const AAC: [u8; 13] = [0xff, 0xf1, 0x58, 0x40, 0x01, 0xbf, 0xfc, 0x00, 0xc8, 0x00, 0x80, 0x23, 0x80];

/// A quiet square wave of 200 Hz.
fn tone(rate: u32, samples: u64) -> Vec<u8> {
    let half = u64::from(rate / 400).max(1);
    let level = |at: u64| if at / half % 2 == 0 { 1_000_i16 } else { -1_000 };
    (0..samples).flat_map(|at| level(at).to_le_bytes()).collect()
}

/// As a server writes it that does not know how long the file will be.
pub(super) fn wav_header(rate: u32) -> [u8; 44] {
    let mut header = *b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x01\0....____\x02\0\x10\0data\xff\xff\xff\xff";
    header[24..28].copy_from_slice(&rate.to_le_bytes());
    header[28..32].copy_from_slice(&(rate * 2).to_le_bytes());
    header
}

/// Frames of 1152 zeros, each the constant of its channel.
fn flac(frames: u64) -> Vec<u8> {
    let total = frames * 1152;
    let mut out = b"fLaC\x80\0\0\x22".to_vec();
    out.extend(1152_u16.to_be_bytes());
    out.extend(1152_u16.to_be_bytes());
    out.extend([0; 6]);
    // 20 bits of rate, 3 of channels less one, 5 of bits less one, 36 of samples.
    let packed = u64::from(RATE) << 44 | 15 << 36 | total;
    out.extend(packed.to_be_bytes());
    out.extend([0; 16]);
    for number in 0..frames {
        let mut frame = vec![0xff, 0xf8, 0x37, 0x08];
        let letter = u32::try_from(number).ok().and_then(char::from_u32).unwrap_or('\0');
        let mut buffer = [0; 4];
        frame.extend(letter.encode_utf8(&mut buffer).as_bytes());
        frame.push(crc8(&frame));
        frame.extend([0, 0, 0]);
        let check = crc16(&frame);
        frame.extend(check.to_be_bytes());
        out.extend(frame);
    }
    out
}

fn crc8(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |crc, byte| (0..8).fold(crc ^ byte, |crc, _| crc << 1 ^ if crc & 0x80 > 0 { 7 } else { 0 }))
}

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| crc << 1 ^ if crc & 0x8000 > 0 { 0x8005 } else { 0 })
    })
}

/// Packets of 20 ms of silence, fifty on a page.
fn opus(packets: u64) -> Vec<u8> {
    const SILENCE: [u8; 3] = [0xf8, 0xff, 0xfe];
    let mut head = b"OpusHead\x01\x01\0\0".to_vec();
    head.extend(RATE.to_le_bytes());
    head.extend([0, 0, 0]);
    let tags = b"OpusTags\x03\0\0\0sim\0\0\0\0".to_vec();
    let mut out = page(2, 0, 0, &[head]);
    out.extend(page(0, 0, 1, &[tags]));
    let (mut done, mut number) = (0, 2);
    while done < packets {
        let here = (packets - done).min(50);
        done += here;
        let last = if done == packets { 4 } else { 0 };
        out.extend(page(last, done * 960, number, &vec![SILENCE.to_vec(); count(here)]));
        number += 1;
    }
    out
}

/// One page of an Ogg stream.
fn page(flags: u8, granule: u64, number: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut out = b"OggS\0".to_vec();
    out.push(flags);
    out.extend(granule.to_le_bytes());
    out.extend(7_u32.to_le_bytes());
    out.extend(number.to_le_bytes());
    out.extend([0; 4]);
    let length = |packet: &Vec<u8>| u8::try_from(packet.len()).unwrap_or(254);
    out.push(u8::try_from(packets.len()).unwrap_or(255));
    out.extend(packets.iter().map(length));
    packets.iter().for_each(|packet| out.extend(packet));
    let check = crc32(&out);
    out[22..26].copy_from_slice(&check.to_le_bytes());
    out
}

fn crc32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |crc, byte| {
        let crc = crc ^ u32::from(*byte) << 24;
        (0..8).fold(crc, |crc, _| crc << 1 ^ if crc & 0x8000_0000 > 0 { 0x04c1_1db7 } else { 0 })
    })
}
