//! Frames of a WebSocket (RFC 6455), read where they lie and written into one buffer.
//!
//! A session passes on what it hears, most of it audio. A library that owns its socket copies each
//! message several times and holds buffers for both directions also while nobody speaks.

use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// The longest payload of a ping, a pong or a close.
const CONTROL: u64 = 125;
/// The longest head of a frame.
pub const LONGEST_HEAD: usize = 14;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    More,
    Text,
    Binary,
    Close,
    Ping,
    Pong,
}

impl FrameKind {
    fn code(self) -> u8 {
        match self {
            FrameKind::More => 0,
            FrameKind::Text => 1,
            FrameKind::Binary => 2,
            FrameKind::Close => 8,
            FrameKind::Ping => 9,
            FrameKind::Pong => 10,
        }
    }

    fn of(code: u8) -> Option<FrameKind> {
        let all =
            [FrameKind::More, FrameKind::Text, FrameKind::Binary, FrameKind::Close, FrameKind::Ping, FrameKind::Pong];
        all.into_iter().find(|kind| kind.code() == code)
    }

    /// It may come between the frames of a message, and is short.
    pub fn is_control(self) -> bool {
        matches!(self, FrameKind::Close | FrameKind::Ping | FrameKind::Pong)
    }
}

/// Not what a WebSocket may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadFrame;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    pub kind: FrameKind,
    /// The last frame of its message.
    pub last: bool,
    pub key: Option<[u8; 4]>,
    pub length: u64,
}

impl FrameHead {
    /// The head at the beginning of these bytes, and how long it is; nothing where more are needed.
    pub fn read(bytes: &[u8]) -> Result<Option<(FrameHead, usize)>, BadFrame> {
        let [first, second, rest @ ..] = bytes else { return Ok(None) };
        // No extension was agreed on, so no bit of one may be set.
        if first & 0x70 != 0 {
            return Err(BadFrame);
        }
        let kind = FrameKind::of(first & 0x0f).ok_or(BadFrame)?;
        let last = first & 0x80 != 0;
        let (length, behind) = match second & 0x7f {
            126 => match rest.first_chunk() {
                Some(bytes) => (u64::from(u16::from_be_bytes(*bytes)), 2),
                None => return Ok(None),
            },
            127 => match rest.first_chunk() {
                Some(bytes) => (u64::from_be_bytes(*bytes), 8),
                None => return Ok(None),
            },
            short => (u64::from(short), 0),
        };
        if kind.is_control() && (!last || length > CONTROL) {
            return Err(BadFrame);
        }
        let key = match (second & 0x80 != 0, rest[behind..].first_chunk()) {
            (false, _) => None,
            (true, Some(key)) => Some(*key),
            (true, None) => return Ok(None),
        };
        let head = 2 + behind + if key.is_some() { 4 } else { 0 };
        Ok(Some((FrameHead { kind, last, key, length }, head)))
    }
}

/// Writes a whole message as one frame.
pub fn put_frame(into: &mut Vec<u8>, kind: FrameKind, payload: &[u8], key: Option<[u8; 4]>) {
    into.reserve(LONGEST_HEAD + payload.len());
    into.push(0x80 | kind.code());
    let masked = if key.is_some() { 0x80 } else { 0 };
    match u16::try_from(payload.len()) {
        Ok(short @ ..=125) => into.push(masked | short as u8),
        Ok(length) => {
            into.push(masked | 126);
            into.extend_from_slice(&length.to_be_bytes());
        }
        Err(_) => {
            into.push(masked | 127);
            into.extend_from_slice(&(payload.len() as u64).to_be_bytes());
        }
    }
    into.extend_from_slice(key.as_ref().map_or(&[][..], |key| key));
    let begins = into.len();
    into.extend_from_slice(payload);
    if let Some(key) = key {
        mask(&mut into[begins..], key, 0);
    }
}

/// Masks bytes or takes their mask away. The first of them is the `at`th of its frame.
pub fn mask(bytes: &mut [u8], key: [u8; 4], at: usize) {
    let key: [u8; 4] = std::array::from_fn(|place| key[(at + place) % 4]);
    let wide: [u8; 32] = std::array::from_fn(|place| key[place % 4]);
    let (pieces, rest) = bytes.as_chunks_mut::<32>();
    for piece in pieces {
        for (byte, key) in piece.iter_mut().zip(wide) {
            *byte ^= key;
        }
    }
    for (byte, key) in rest.iter_mut().zip(wide) {
        *byte ^= key;
    }
}

/// What a close says. One without a code says nothing.
pub fn read_close(payload: &[u8]) -> Result<Option<CloseFrame>, BadFrame> {
    let Some((code, reason)) = payload.split_first_chunk() else {
        return if payload.is_empty() { Ok(None) } else { Err(BadFrame) };
    };
    let code = CloseCode::from(u16::from_be_bytes(*code));
    let reason = std::str::from_utf8(reason).map_err(|_| BadFrame)?;
    Ok(Some(CloseFrame { code, reason: reason.into() }))
}

/// The payload of a close.
pub fn close_payload(code: CloseCode, reason: &str) -> Vec<u8> {
    let mut payload = u16::from(code).to_be_bytes().to_vec();
    payload.extend_from_slice(reason.as_bytes());
    payload.truncate(CONTROL as usize);
    payload
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 4] = [1, 2, 250, 7];

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        for length in [0_usize, 1, 125, 126, 65_535, 65_536, 100_000] {
            let payload: Vec<u8> = (0..length).map(|at| at as u8).collect();
            for key in [None, Some(KEY)] {
                let mut bytes = Vec::new();
                put_frame(&mut bytes, FrameKind::Text, &payload, key);
                let (head, size) = FrameHead::read(&bytes).expect("a frame").expect("whole");
                assert_eq!(head, FrameHead { kind: FrameKind::Text, last: true, key, length: length as u64 });
                for cut in 0..size {
                    assert_eq!(FrameHead::read(&bytes[..cut]), Ok(None), "{length} cut at {cut}");
                }
                let body = &mut bytes[size..];
                if let Some(key) = key {
                    mask(body, key, 0);
                }
                assert_eq!(body, payload, "{length}");
            }
        }
    }

    #[test]
    fn a_mask_is_the_same_in_pieces() {
        let plain: Vec<u8> = (0..200).collect();
        let mut whole = plain.clone();
        mask(&mut whole, KEY, 0);
        for (at, byte) in plain.iter().enumerate() {
            assert_eq!(whole[at], byte ^ KEY[at % 4]);
        }
        for cut in 0..plain.len() {
            let mut pieces = plain.clone();
            let (first, second) = pieces.split_at_mut(cut);
            mask(first, KEY, 0);
            mask(second, KEY, cut);
            assert_eq!(pieces, whole, "{cut}");
        }
    }

    #[test]
    fn what_no_websocket_sends_is_seen_in_its_head() {
        for bad in [
            &[0xc1, 0][..], // a bit of an extension: compressed
            &[0x83, 0],     // no such kind
            &[0x8b, 0],
            &[0x09, 0],             // a ping in pieces
            &[0x89, 126, 0, 126],   // a long ping
            &[0x88, 0xfe, 0xff, 0], // a long close
        ] {
            assert_eq!(FrameHead::read(bad), Err(BadFrame), "{bad:?}");
        }
        let longest = [0x82, 127, 255, 255, 255, 255, 255, 255, 255, 255];
        assert_eq!(FrameHead::read(&longest).expect("a head").expect("whole").0.length, u64::MAX);
    }

    #[test]
    fn a_close_says_its_code_and_reason() {
        let payload = close_payload(CloseCode::Away, "later");
        let read = read_close(&payload).expect("a close").expect("a code");
        assert_eq!((read.code, read.reason.as_str()), (CloseCode::Away, "later"));
        assert_eq!((read_close(&[]), read_close(&[3])), (Ok(None), Err(BadFrame)));
        assert_eq!(read_close(&[3, 232, 0xff]), Err(BadFrame));
        assert_eq!(close_payload(CloseCode::Away, &"x".repeat(300)).len(), 125);
    }
}
