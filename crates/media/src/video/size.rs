//! Sizes in pixels, the resolution tiers they fold into, and their aspect ratios.

use super::VideoRefusal;

/// Width and height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub width: u32,
    pub height: u32,
}

/// One row per size a provider documents: tier, aspect ratio, width, height.
const TIERS: &[(&str, &str, u32, u32)] = &[
    ("480P", "16:9", 832, 480),
    ("480P", "9:16", 480, 832),
    ("480P", "1:1", 624, 624),
    ("720P", "16:9", 1280, 720),
    ("720P", "9:16", 720, 1280),
    ("720P", "1:1", 960, 960),
    ("720P", "4:3", 1104, 832),
    ("720P", "3:4", 832, 1104),
    ("720P", "4:3", 1088, 832),
    ("720P", "3:4", 832, 1088),
    ("1080P", "16:9", 1920, 1080),
    ("1080P", "9:16", 1080, 1920),
    ("1080P", "1:1", 1440, 1440),
    ("1080P", "4:3", 1648, 1248),
    ("1080P", "3:4", 1248, 1648),
    ("1080P", "4:3", 1632, 1248),
    ("1080P", "3:4", 1248, 1632),
];

/// At 16:9, what all makers mean by a number of lines. Of other numbers and ratios each has its own
/// pixels.
const WIDE: &[(&str, u32, u32)] = &[("720p", 1280, 720), ("1080p", 1920, 1080)];

/// The resolutions of modes, for models that are asked for a mode.
const MODES: &[(&str, &str)] = &[("std", "720p"), ("pro", "1080p"), ("4k", "4k")];

/// The size of a video with these effective parameters: as it was written; else the pixels, where
/// resolution and ratio leave no doubt; else the resolution by its name. Families A and E write an
/// asterisk, others an x.
pub(super) fn shown<'a>(effective: impl Fn(&str) -> Option<&'a str>) -> String {
    if let Some(size) = effective("size") {
        return size.to_owned();
    }
    let of_mode = |mode: &str| MODES.iter().find(|row| row.0 == mode).map(|row| row.1);
    let resolution = effective("resolution").or_else(|| effective("mode").and_then(of_mode)).unwrap_or_default();
    let ratio = effective("ratio").unwrap_or_default();
    if let Some(row) = TIERS.iter().find(|row| (row.0, row.1) == (resolution, ratio)) {
        return format!("{}*{}", row.2, row.3);
    }
    match (WIDE.iter().find(|row| row.0 == resolution), ratio) {
        (Some((_, long, short)), "16:9") => format!("{long}x{short}"),
        (Some((_, long, short)), "9:16") => format!("{short}x{long}"),
        _ => resolution.to_owned(),
    }
}

/// The example in the message about sizes.
const EXAMPLE: &str = "1280*720";

impl Size {
    /// Width and height joined by an asterisk; anything else, the letter x above all, is refused.
    /// `param` is the field it stands in.
    pub fn starred(text: &str, param: &str) -> Result<Size, VideoRefusal> {
        Size::split(text, '*').ok_or_else(|| Size::invalid(text, param))
    }

    pub fn invalid(text: &str, param: &str) -> VideoRefusal {
        VideoRefusal::invalid(param, format!("invalid size: {text}, example: {EXAMPLE}"))
    }

    /// The refusal of a size written with an x, for a model whose sizes look like the example.
    pub fn crossed(text: &str, param: &str, example: &str) -> Option<VideoRefusal> {
        Size::split(text, 'x')?;
        Some(VideoRefusal::invalid(param, format!("invalid size: {text}, example: {example}")))
    }

    /// A tier at 16:9, as it is written; the example where there is no such tier.
    pub fn wide(tier: &str) -> String {
        let row = TIERS.iter().find(|row| (row.0, row.1) == (tier, "16:9"));
        row.map_or_else(|| EXAMPLE.to_owned(), |row| format!("{}*{}", row.2, row.3))
    }

    /// Joined by an asterisk or an x, for the providers that write an x themselves.
    pub fn either(text: &str) -> Option<Size> {
        Size::split(text, '*').or_else(|| Size::split(text, 'x'))
    }

    fn split(text: &str, mark: char) -> Option<Size> {
        let (width, height) = text.split_once(mark)?;
        let side = |text: &str| {
            let plain = (1..=5).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
            text.parse::<u32>().ok().filter(|side| plain && *side > 0)
        };
        Some(Size { width: side(width)?, height: side(height)? })
    }

    fn row(self) -> Option<&'static (&'static str, &'static str, u32, u32)> {
        TIERS.iter().find(|row| (row.2, row.3) == (self.width, self.height))
    }

    /// Tier and aspect ratio of a documented size.
    pub fn fold(self) -> Option<(&'static str, &'static str)> {
        self.row().map(|row| (row.0, row.1))
    }

    /// The tier a size is billed as: its own, or the lowest with as many pixels; none above the
    /// highest.
    pub fn tier(self) -> Option<&'static str> {
        let pixels = |width: u32, height: u32| u64::from(width) * u64::from(height);
        let own = pixels(self.width, self.height);
        let room = |tier: &str| TIERS.iter().filter(|row| row.0 == tier).map(|row| pixels(row.2, row.3)).max();
        let by_room = || ["480P", "720P", "1080P"].into_iter().find(|tier| room(tier).is_some_and(|room| own <= room));
        self.row().map(|row| row.0).or_else(by_room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling() {
        for good in ["1280*720", "1*1", "99999*99999"] {
            assert!(Size::starred(good, "size").is_ok(), "{good}");
        }
        for bad in
            ["1280x720", "1280X720", "1280", "1280*", "*720", "0*720", "+1*2", " 1*2", "1*2*3", "100000*1", "720P"]
        {
            let refusal = Size::starred(bad, "size").expect_err(bad);
            assert_eq!(refusal.message, format!("invalid size: {bad}, example: 1280*720"));
        }
    }

    #[test]
    fn what_is_shown_of_a_size() {
        for (effective, expected) in [
            (&[("size", "1280*720"), ("resolution", "720P")][..], "1280*720"),
            (&[("size", "720x1280"), ("resolution", "720p")], "720x1280"),
            (&[("resolution", "1080P")], "1080P"),
            (&[("resolution", "720P"), ("ratio", "1:1")], "960*960"),
            (&[("resolution", "720P"), ("ratio", "21:9")], "720P"),
            (&[("resolution", "720p"), ("ratio", "16:9")], "1280x720"),
            (&[("resolution", "1080p"), ("ratio", "9:16")], "1080x1920"),
            (&[("resolution", "720p"), ("ratio", "adaptive")], "720p"),
            (&[("resolution", "480p"), ("ratio", "16:9")], "480p"),
            (&[("resolution", "768P"), ("ratio", "16:9")], "768P"),
            (&[("mode", "std"), ("ratio", "16:9")], "1280x720"),
            (&[("mode", "pro"), ("ratio", "1:1")], "1080p"),
            (&[("mode", "4k")], "4k"),
        ] {
            let sizes = shown(|name| effective.iter().find(|(known, _)| *known == name).map(|(_, value)| *value));
            assert_eq!(sizes, expected, "{effective:?}");
        }
    }

    #[test]
    fn tiers_by_table_and_by_room() {
        for (text, tier) in [
            ("832*480", Some("480P")),
            ("640*480", Some("480P")),
            ("1280*720", Some("720P")),
            ("1088*832", Some("720P")),
            ("1000*900", Some("720P")),
            ("1920*1080", Some("1080P")),
            ("1300*720", Some("1080P")),
            ("3840*2160", None),
        ] {
            assert_eq!(Size::starred(text, "size").expect("a size").tier(), tier, "{text}");
        }
    }
}
