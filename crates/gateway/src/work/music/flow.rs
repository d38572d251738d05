//! A song on its way: taken out of the provider's answer, measured, and written into the result as
//! base64. Nothing of it is buffered.

use crate::call::{Meter, Rewrite};
use bytes::{Bytes, BytesMut};
use tollgate_media::audio::{Length, Unmeasured};
use tollgate_media::music::{SettledSong, SongText};
use tollgate_media::speech::SpeechMeasure;
use tollgate_store::Counters;
use tollgate_upstream::{AudioReader, Fault};

pub struct MusicFlow {
    reader: Box<dyn AudioReader>,
    text: SongText,
    /// Taken at the end.
    measure: Option<SpeechMeasure>,
    song: SettledSong,
    meter: Option<Meter>,
}

/// What is charged for a song that plays so long: never more seconds than were asked for.
pub fn used(song: &SettledSong, played: u64, estimated: bool, raw_usage: Option<String>) -> Meter {
    let seconds = song.seconds.map_or(played, |asked| if played == 0 { asked } else { played.min(asked) });
    Meter::Known { used: Counters::song(seconds).unwrap_or_default(), estimated, raw_usage }
}

impl MusicFlow {
    pub fn new(reader: Box<dyn AudioReader>, song: SettledSong, created: i64) -> MusicFlow {
        MusicFlow {
            reader,
            text: SongText::new(created, song.format),
            measure: Some(SpeechMeasure::new(song.format, 0)),
            song,
            meter: None,
        }
    }

    /// What goes out for a piece of the song.
    pub fn write(&mut self, audio: &[u8]) -> Bytes {
        if audio.is_empty() {
            return Bytes::new();
        }
        if let Some(measure) = &mut self.measure {
            measure.feed(audio);
        }
        self.text.feed(audio)
    }
}

impl Rewrite for MusicFlow {
    fn feed(&mut self, piece: Bytes) -> Result<Bytes, Fault> {
        let audio = self.reader.feed(piece)?;
        Ok(self.write(&audio))
    }

    fn end(&mut self) -> Result<Bytes, Fault> {
        let (audio, report) = self.reader.end()?;
        let mut out = BytesMut::from(&self.write(&audio)[..]);
        let measured = self.measure.take().map_or(Err(Unmeasured::Unknown), SpeechMeasure::finish);
        let length = match measured {
            Ok(length) => Some(length),
            Err(Unmeasured::Silent | Unmeasured::Broken) => return Err(Fault::garbage()),
            Err(_) => None,
        };
        let seconds = length.map_or(0, Length::whole_seconds);
        self.meter = Some(used(&self.song, seconds, length.is_none(), report));
        out.extend_from_slice(&self.text.end(length.map_or(0, Length::millis)));
        Ok(out.freeze())
    }

    fn meter(&mut self) -> Option<Meter> {
        self.meter.take()
    }
}
