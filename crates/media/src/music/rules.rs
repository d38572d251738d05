//! What one model takes, and a request settled by it before anything is held.

use super::request::MusicRequest;
use crate::speech::SpeechFormat;
use tollgate_wire::Problem;
use tollgate_wire::error::Code;

/// The rules of a model, as its catalog has them.
#[derive(Clone, Copy, Debug)]
pub struct MusicRules<'a> {
    pub formats: &'a [String],
    pub default_format: Option<&'a str>,
    pub most_prompt: u64,
    /// None: it takes no lyrics.
    pub most_lyrics: Option<u64>,
    /// It can leave out the voice.
    pub instrumental: bool,
    /// The range of `duration` in seconds; none where it cannot be chosen.
    pub seconds: Option<(u64, u64)>,
    /// Its providers give links.
    pub links: bool,
}

/// A request with everything decided.
#[derive(Clone, Debug, PartialEq)]
pub struct SettledSong {
    pub prompt: Option<String>,
    pub lyrics: Option<String>,
    pub instrumental: bool,
    pub writes_lyrics: bool,
    /// Seconds; of a model whose length can be chosen, never left to its provider.
    pub seconds: Option<u64>,
    pub format: SpeechFormat,
    pub link: bool,
}

/// Of a song whose length nobody named.
const SECONDS: u64 = 30;

impl MusicRules<'_> {
    pub fn settle(&self, asked: &MusicRequest) -> Result<SettledSong, Problem> {
        if let Some(field) = asked.others.keys().next() {
            let text = format!("`{field}` is not a parameter of this endpoint.");
            return Err(Problem::new(Code::UnknownParameter, field, text));
        }
        self.check_texts(asked)?;
        if asked.instrumental && !self.instrumental {
            return Err(refused("instrumental", "This model always sings."));
        }
        if asked.link && !self.links {
            return Err(refused("output", "This model gives no links; take \"b64_json\"."));
        }
        Ok(SettledSong {
            prompt: asked.prompt.clone(),
            lyrics: asked.lyrics.clone(),
            instrumental: asked.instrumental,
            writes_lyrics: asked.writes_lyrics,
            seconds: self.seconds(asked)?,
            format: self.format(asked)?,
            link: asked.link,
        })
    }

    fn check_texts(&self, asked: &MusicRequest) -> Result<(), Problem> {
        let lyrics = asked.lyrics.as_deref();
        let texts = [("prompt", asked.prompt.as_deref(), Some(self.most_prompt)), ("lyrics", lyrics, self.most_lyrics)];
        for (name, text, most) in texts {
            let Some(text) = text else { continue };
            let Some(most) = most else { return Err(refused(name, "This model takes no lyrics.")) };
            let count = text.chars().count() as u64;
            if count > most {
                let text = format!("`{name}` has {count} characters; this model takes at most {most}.");
                return Err(Problem::new(Code::InvalidParameter, name, text));
            }
        }
        if asked.prompt.is_none() && (lyrics.is_none() || asked.instrumental) {
            return Err(Problem::missing("prompt"));
        }
        if asked.instrumental && lyrics.is_some() {
            return Err(refused("lyrics", "`lyrics` are sung; an instrumental song has none."));
        }
        if asked.writes_lyrics && (self.most_lyrics.is_none() || lyrics.is_some()) {
            return Err(refused("lyrics_optimizer", "`lyrics_optimizer` is for a model that sings, without `lyrics`."));
        }
        Ok(())
    }

    fn seconds(&self, asked: &MusicRequest) -> Result<Option<u64>, Problem> {
        match (self.seconds, asked.duration) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(refused("duration", "The `duration` of this model's songs cannot be chosen.")),
            (Some((least, most)), None) => Ok(Some(SECONDS.clamp(least, most))),
            (Some((least, most)), Some(seconds)) if (least..=most).contains(&seconds) => Ok(Some(seconds)),
            (Some((least, most)), Some(_)) => {
                Err(refused("duration", &format!("`duration` must be between {least} and {most} seconds.")))
            }
        }
    }

    fn format(&self, asked: &MusicRequest) -> Result<SpeechFormat, Problem> {
        let first = self.formats.first().map(String::as_str);
        let name = asked.response_format.as_deref().or(self.default_format).or(first).unwrap_or("mp3");
        let offered = self.formats.iter().any(|one| one == name);
        SpeechFormat::named(name).filter(|_| offered).ok_or_else(|| {
            let list = self.formats.join(", ");
            refused("response_format", &format!("`response_format` is not offered by this model; it offers {list}."))
        })
    }
}

fn refused(param: &str, text: &str) -> Problem {
    Problem::new(Code::UnsupportedValue, param, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_song_is_settled_or_its_field_is_named() {
        let formats = ["mp3".to_owned(), "wav".to_owned()];
        let rules = MusicRules {
            formats: &formats,
            default_format: None,
            most_prompt: 4,
            most_lyrics: Some(5),
            instrumental: true,
            seconds: Some((3, 20)),
            links: false,
        };
        let settle = |rules: &MusicRules<'_>, more: &str| {
            let asked = MusicRequest::from_json(format!("{{\"model\":\"m\"{more}}}").as_bytes()).expect("a request");
            rules.settle(&asked).map_err(|bad| bad.param.unwrap_or_default())
        };
        let plain = settle(&rules, r#","prompt":"jazz""#).expect("settled");
        assert_eq!((plain.seconds, plain.format), (Some(20), SpeechFormat::Mp3), "as long as it can be, up to 30 s");
        assert!(settle(&rules, r#","lyrics":"la la""#).is_ok());
        for (more, param) in [
            ("", "prompt"),
            (r#","prompt":"jazzy""#, "prompt"),
            (r#","lyrics":"la la!""#, "lyrics"),
            (r#","lyrics":"la","instrumental":true"#, "prompt"),
            (r#","prompt":"j","lyrics":"la","instrumental":true"#, "lyrics"),
            (r#","prompt":"j","lyrics":"la","lyrics_optimizer":true"#, "lyrics_optimizer"),
            (r#","prompt":"j","duration":2"#, "duration"),
            (r#","prompt":"j","duration":21"#, "duration"),
            (r#","prompt":"j","response_format":"aac""#, "response_format"),
            (r#","prompt":"j","output":"url""#, "output"),
            (r#","prompt":"j","aigc_watermark":true"#, "aigc_watermark"),
        ] {
            assert_eq!(settle(&rules, more), Err(param.to_owned()), "{more}");
        }
        let fixed = MusicRules { seconds: None, most_lyrics: None, instrumental: false, ..rules };
        assert_eq!(settle(&fixed, r#","prompt":"j""#).expect("settled").seconds, None);
        assert_eq!(settle(&fixed, r#","prompt":"j","duration":9"#), Err("duration".to_owned()));
        assert_eq!(settle(&fixed, r#","prompt":"j","lyrics":"a""#), Err("lyrics".to_owned()));
        assert_eq!(settle(&fixed, r#","prompt":"j","instrumental":true"#), Err("instrumental".to_owned()));
    }
}
