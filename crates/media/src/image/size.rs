//! How large a picture shall be. Clients write it in pixels, as a ratio, or as a class such as
//! `2K`; providers want one of these. What a price goes by is the text that was understood and the
//! class, which is defined here and nowhere else.

use std::fmt;
use tollgate_wire::Problem;

/// The class of a size, by its number of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SizeClass {
    K1,
    K2,
    K4,
}

/// The most pixels of the first two classes; whatever is larger is of the third.
const K1: u64 = 1_600_000;
const K2: u64 = 4_300_000;
/// The longest side that is understood.
const LONGEST: u32 = 16_384;

impl SizeClass {
    pub const fn of(width: u32, height: u32) -> SizeClass {
        let pixels = width as u64 * height as u64;
        if pixels <= K1 {
            SizeClass::K1
        } else if pixels <= K2 {
            SizeClass::K2
        } else {
            SizeClass::K4
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            SizeClass::K1 => "1K",
            SizeClass::K2 => "2K",
            SizeClass::K4 => "4K",
        }
    }

    /// `3K` is a provider's word; it is larger than the second class.
    fn read(text: &str) -> Option<SizeClass> {
        match text.trim().to_ascii_uppercase().as_str() {
            "1K" => Some(SizeClass::K1),
            "2K" => Some(SizeClass::K2),
            "3K" | "4K" => Some(SizeClass::K4),
            _ => None,
        }
    }
}

/// Width to height, reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio(pub u32, pub u32);

impl Ratio {
    fn of(width: u32, height: u32) -> Ratio {
        let divisor = divisor(width, height);
        Ratio(width / divisor, height / divisor)
    }

    /// The word of a list that means this ratio: the very one, or the nearest within two parts of a
    /// hundred.
    pub fn nearest<'w>(self, words: &[&'w str]) -> Option<&'w str> {
        let off = |word: &str| {
            let other = Ratio::read(word)?;
            // |a/b - c/d| / (c/d), in parts of a million.
            let (own, theirs) = (u64::from(self.0) * u64::from(other.1), u64::from(other.0) * u64::from(self.1));
            Some(own.abs_diff(theirs).saturating_mul(1_000_000) / theirs.max(1))
        };
        let best = words.iter().filter_map(|word| Some((off(word)?, *word))).min()?;
        (best.0 <= 20_000).then_some(best.1)
    }

    fn read(text: &str) -> Option<Ratio> {
        let (width, height) = text.trim().split_once(':')?;
        let (width, height) = (tenths(width)?, tenths(height)?);
        let good = |side: u32| (1..=LONGEST * 10).contains(&side);
        (good(width) && good(height)).then(|| Ratio::of(width, height))
    }
}

/// A side of a ratio in tenths: telephones have `19.5:9`.
fn tenths(text: &str) -> Option<u32> {
    let text = text.trim();
    let (whole, tenth) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if tenth.len() != 1 || !digits(tenth) || !digits(whole) {
        return None;
    }
    whole.parse::<u32>().ok()?.checked_mul(10)?.checked_add(tenth.parse().ok()?)
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0, self.1)
    }
}

fn divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a.max(1) } else { divisor(b, a % b) }
}

/// A size as it was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// One spelling: `1024x1024`, `2K`, `16:9`, `auto`.
    pub text: String,
    pub pixels: Option<(u32, u32)>,
    pub ratio: Option<Ratio>,
    pub class: Option<SizeClass>,
}

impl Shape {
    /// From `size`, `aspect_ratio` and `resolution`, which may say parts of it. `None`: nothing is
    /// said.
    pub fn read(size: Option<&str>, ratio: Option<&str>, resolution: Option<&str>) -> Result<Option<Shape>, Problem> {
        let auto = |text: &&str| text.trim().eq_ignore_ascii_case(AUTO);
        // A part that is said is not left to the provider.
        let size = size.filter(|text| !(auto(text) && (ratio.is_some() || resolution.is_some())));
        let mut shape = match size {
            None => None,
            Some(text) => Some(Shape::of(text).ok_or_else(|| Problem::wrong("size", SIZE))?),
        };
        if let Some(text) = ratio {
            let ratio = Ratio::read(text).ok_or_else(|| Problem::wrong("aspect_ratio", "a ratio such as `16:9`"))?;
            let shape = shape.get_or_insert_with(|| Shape::of_ratio(ratio));
            if shape.ratio.is_some_and(|own| own != ratio) {
                return Err(Problem::wrong("aspect_ratio", "the ratio of `size`, or left out"));
            }
            shape.ratio = Some(ratio);
        }
        if let Some(text) = resolution {
            let class = SizeClass::read(text).ok_or_else(|| Problem::wrong("resolution", "`1K`, `2K` or `4K`"))?;
            let word = || Shape { text: text.trim().to_ascii_uppercase(), pixels: None, ratio: None, class: None };
            let shape = shape.get_or_insert_with(word);
            if shape.class.is_some_and(|own| own != class) {
                return Err(Problem::wrong("resolution", "the class of `size`, or left out"));
            }
            shape.class = Some(class);
        }
        Ok(shape)
    }

    /// One text.
    pub fn of(text: &str) -> Option<Shape> {
        let plain = text.trim().to_ascii_lowercase();
        if plain == AUTO {
            return Some(Shape { text: plain, pixels: None, ratio: None, class: None });
        }
        if let Some(class) = SizeClass::read(&plain) {
            return Some(Shape { text: plain.to_ascii_uppercase(), pixels: None, ratio: None, class: Some(class) });
        }
        if let Some(ratio) = Ratio::read(&plain) {
            return Some(Shape::of_ratio(ratio));
        }
        let (width, height) = plain.split_once(['x', '*'])?;
        let side = |text: &str| text.trim().parse::<u32>().ok().filter(|side| (1..=LONGEST).contains(side));
        let (width, height) = (side(width)?, side(height)?);
        Some(Shape {
            text: format!("{width}x{height}"),
            pixels: Some((width, height)),
            ratio: Some(Ratio::of(width, height)),
            class: Some(SizeClass::of(width, height)),
        })
    }

    fn of_ratio(ratio: Ratio) -> Shape {
        Shape { text: ratio.to_string(), pixels: None, ratio: Some(ratio), class: None }
    }

    pub fn is_auto(&self) -> bool {
        self.text == AUTO
    }
}

/// As the provider likes it.
const AUTO: &str = "auto";
const SIZE: &str = "a size such as `1024x1024`, a class (`1K`, `2K`, `4K`), a ratio (`16:9`) or `auto`";

#[cfg(test)]
mod tests {
    use super::*;

    /// MM10: 1280x720 was charged as 2K elsewhere.
    #[test]
    fn every_size_has_one_class_exact_at_the_borders() {
        for (size, class) in [
            ("1024x1024", SizeClass::K1),
            ("1280x720", SizeClass::K1),
            ("1536x1024", SizeClass::K1),
            ("1600x1000", SizeClass::K1),
            ("1601x1000", SizeClass::K2),
            ("2048x2048", SizeClass::K2),
            ("2560x1440", SizeClass::K2),
            ("4300x1000", SizeClass::K2),
            ("4301x1000", SizeClass::K4),
            ("3840x2160", SizeClass::K4),
            ("4096*4096", SizeClass::K4),
            ("1K", SizeClass::K1),
            ("2k", SizeClass::K2),
            ("3K", SizeClass::K4),
            ("4K", SizeClass::K4),
        ] {
            assert_eq!(Shape::of(size).and_then(|shape| shape.class), Some(class), "{size}");
        }
        for none in
            ["", "x", "0x10", "16385x1", "1024", "5K", "1024x", "-1x1", "0:1", "a:b", "1.55:1", ".5:1", "1.:1", "+1:1"]
        {
            assert_eq!(Shape::of(none), None, "{none:?}");
        }
    }

    #[test]
    fn a_ratio_is_exact_or_near() {
        let words = ["1:1", "16:9", "9:16", "4:3", "3:2", "2:3", "21:9"];
        for (size, word) in [
            ("1024x1024", Some("1:1")),
            ("1280x720", Some("16:9")),
            ("1792x1024", Some("16:9")),
            ("1024x1792", Some("9:16")),
            ("1536x1024", Some("3:2")),
            ("1365x1024", Some("4:3")),
            ("1000x500", None),
            ("100x1", None),
        ] {
            let ratio = Shape::of(size).and_then(|shape| shape.ratio).expect("a ratio");
            // 1792x1024 is 7:4, 1.6 % off 16:9.
            assert_eq!(ratio.nearest(&words), word, "{size}");
        }
    }

    #[test]
    fn a_ratio_may_have_tenths() {
        let phone = Shape::of("19.5:9").and_then(|shape| shape.ratio).expect("a ratio");
        assert_eq!((phone, phone.to_string()), (Ratio(13, 6), "13:6".to_owned()));
        assert_eq!(phone.nearest(&["2:1", "20:9", "19.5:9"]), Some("19.5:9"));
        assert_eq!(Shape::of("1.0:1").map(|shape| shape.text), Some("1:1".to_owned()));
    }

    #[test]
    fn parts_of_a_size_agree_or_are_refused() {
        let read = |size, ratio, resolution| Shape::read(size, ratio, resolution);
        let both = read(None, Some("16:9"), Some("2k")).expect("read").expect("a shape");
        assert_eq!((both.text.as_str(), both.class, both.ratio), ("16:9", Some(SizeClass::K2), Some(Ratio(16, 9))));
        let word = read(Some("4K"), Some("1:1"), None).expect("read").expect("a shape");
        assert_eq!((word.text.as_str(), word.ratio), ("4K", Some(Ratio(1, 1))));
        assert_eq!(read(None, None, None), Ok(None));
        for (ratio, resolution, text) in [
            (None, None, "auto"),
            (Some("16:9"), None, "16:9"),
            (None, Some("2k"), "2K"),
            (Some("16:9"), Some("2k"), "16:9"),
        ] {
            let shape = read(Some(" Auto"), ratio, resolution).expect("read").expect("a shape");
            assert_eq!(shape.text, text, "what is said is not left to the provider");
        }
        for (size, ratio, resolution, field) in [
            (Some("1024x1024"), Some("16:9"), None, "aspect_ratio"),
            (Some("1024x1024"), None, Some("4K"), "resolution"),
            (Some("big"), None, None, "size"),
            (None, Some("wide"), None, "aspect_ratio"),
            (None, None, Some("8K"), "resolution"),
        ] {
            let refused = read(size, ratio, resolution).expect_err("refused");
            assert_eq!(refused.param.as_deref(), Some(field));
        }
    }
}
