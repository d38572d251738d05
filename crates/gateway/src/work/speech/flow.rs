//! Speech on its way: taken out of the provider's answer, put into the wrapping that was asked for,
//! counted, and written as bytes or as events. Nothing of it is buffered.

use crate::call::{Meter, Rewrite};
use bytes::{Bytes, BytesMut};
use std::time::Duration;
use tollgate_media::audio::Unmeasured;
use tollgate_media::speech::{NotWrapped, SettledSpeech, SpeechMeasure, Wrapping, speech_delta, speech_done};
use tollgate_store::{Counters, Side};
use tollgate_upstream::{AudioReader, Fault, SpeechAsk};

pub struct SpeechFlow {
    reader: Box<dyn AudioReader>,
    wrapping: Wrapping,
    /// Taken at the end.
    measure: Option<SpeechMeasure>,
    speech: SettledSpeech,
    meter: Option<Meter>,
}

impl SpeechFlow {
    pub fn new(reader: Box<dyn AudioReader>, ask: &SpeechAsk<'_>) -> SpeechFlow {
        let wanted = ask.speech.format;
        SpeechFlow {
            reader,
            wrapping: Wrapping::new(ask.made, wanted, ask.rate),
            measure: Some(SpeechMeasure::new(wanted, ask.rate)),
            speech: ask.speech.clone(),
            meter: None,
        }
    }

    /// What is charged whatever becomes of the audio, from its first byte on: the provider has read
    /// all of the text.
    pub fn begun(speech: &SettledSpeech) -> Meter {
        used(speech, Duration::ZERO, true, None)
    }

    /// What goes out for a piece of audio.
    pub fn write(&mut self, audio: Bytes) -> Result<Bytes, Fault> {
        let audio = self.wrapping.feed(audio).map_err(|NotWrapped| Fault::garbage())?;
        if audio.is_empty() {
            return Ok(audio);
        }
        if let Some(measure) = &mut self.measure {
            measure.feed(&audio);
        }
        Ok(if self.speech.events { speech_delta(&audio) } else { audio })
    }
}

fn used(speech: &SettledSpeech, played: Duration, estimated: bool, raw_usage: Option<String>) -> Meter {
    // More than can be counted is not shown; the characters always can.
    let counters = Counters::speech(&speech.text, played).or_else(|| Counters::speech(&speech.text, Duration::ZERO));
    Meter::Known { used: counters.unwrap_or_default(), estimated, raw_usage }
}

impl Rewrite for SpeechFlow {
    fn feed(&mut self, piece: Bytes) -> Result<Bytes, Fault> {
        let audio = self.reader.feed(piece)?;
        self.write(audio)
    }

    fn end(&mut self) -> Result<Bytes, Fault> {
        let (audio, report) = self.reader.end()?;
        let last = self.write(audio)?;
        let measured = self.measure.take().map_or(Err(Unmeasured::Unknown), SpeechMeasure::finish);
        let (played, estimated) = match measured {
            Ok(length) => (Duration::from_secs(length.whole_seconds()), false),
            // No sound in it: half a reading is none, and this is not even half.
            Err(Unmeasured::Silent | Unmeasured::Broken) => return Err(Fault::garbage()),
            // It plays for nobody knows how long, and that is not guessed.
            Err(_) => (Duration::ZERO, true),
        };
        let meter = used(&self.speech, played, estimated, report);
        let (counters, _) = meter.measured();
        self.meter = Some(meter);
        if !self.speech.events {
            return Ok(last);
        }
        let mut all = BytesMut::from(&last[..]);
        all.extend_from_slice(&speech_done(counters.total(Side::Input), counters.total(Side::Output)));
        Ok(all.freeze())
    }

    fn meter(&mut self) -> Option<Meter> {
        self.meter.take()
    }
}
