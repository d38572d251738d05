//! The scanner against serde_json: the same texts are JSON, the same strings mean the same.

use super::*;
use proptest::prelude::*;

fn accepts(text: &[u8]) -> bool {
    let mut scan = Scan::new(text);
    scan.skip().and_then(|()| scan.end()).is_ok()
}

fn serde_accepts(text: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok()
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        "\\PC{0,12}".prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::vec(("[a-z\"\\\\é]{0,6}", inner), 0..6)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Words of eight bytes find what a look at every byte finds, wherever it stands.
    #[test]
    fn runs_end_at_the_first_mark(bytes in prop::collection::vec(prop_oneof![Just(b'a'), Just(0xC3), any::<u8>()], 0..40)) {
        let first = |is: &dyn Fn(u8) -> bool| bytes.iter().position(|&byte| is(byte)).unwrap_or(bytes.len());
        let plain = first(&|byte| byte < 0x20 || byte == b'"' || byte == b'\\');
        prop_assert_eq!((plain_run(&bytes), long_plain_run(&bytes)), (plain, plain));
        prop_assert_eq!(run_without(&bytes, [b'\n', 0xE2], false), first(&|byte| byte == b'\n' || byte == 0xE2));
    }

    /// A string that is read in line is what the way of long ones reads.
    #[test]
    fn short_strings_are_read_like_long_ones(
        text in prop::collection::vec(prop_oneof![12 => Just(b'a'), 2 => Just(b'"'), 1 => Just(b'\\'), 1 => any::<u8>()], 0..60)
    ) {
        let text = [&b"\""[..], &text].concat();
        let (mut short, mut long) = (Scan::new(&text), Scan::new(&text));
        let parts = |read: Result<Text<'_>, BrokenJson>| read.map(|text| (text.raw.to_vec(), text.escaped));
        prop_assert_eq!(parts(short.string()), parts(long.long_string()));
        prop_assert_eq!(short.at, long.at);
    }

    #[test]
    fn blanks_are_passed_over_and_nothing_else(bytes in prop::collection::vec(prop_oneof![4 => Just(b' '), 4 => Just(b'\n'), 1 => 0..0x30_u8], 0..8)) {
        let blanks = bytes.iter().take_while(|byte| b" \n\r\t".contains(byte)).count();
        let mut scan = Scan::new(&bytes);
        prop_assert_eq!((scan.peek(), scan.at()), (bytes.get(blanks).copied(), blanks));
    }

    #[test]
    fn whole_numbers_are_those_of_the_standard_library(text in r"[0-9]{0,3}|[0-9]{18,22}|[-+0-9_ .é]{0,4}") {
        let plain = text.starts_with(|letter: char| letter.is_ascii_digit()).then(|| text.parse::<u64>().ok());
        prop_assert_eq!(whole_number(text.as_bytes()), plain.flatten());
    }

    /// Words of digits end where a look at every byte ends.
    #[test]
    fn digits_end_at_the_first_other_byte(bytes in prop::collection::vec(prop_oneof![9 => b'0'..=b'9', 1 => any::<u8>()], 0..40)) {
        let end = bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len());
        prop_assert_eq!(digit_run(&bytes), end);
    }

    #[test]
    fn agrees_on_lists_of_numbers(text in r"\[-?[0-9]{1,12}[.eE+-]{0,2}[0-9]{0,24}(, ?-?[0-9]{1,2}\.?[0-9]{0,20}){0,3}\]?") {
        prop_assert_eq!(accepts(text.as_bytes()), serde_accepts(text.as_bytes()), "{}", text);
    }

    #[test]
    fn serde_reads_what_is_written(text in prop_oneof![any::<String>(), "[a-z\"\\\\\n\u{85}\u{2028}\u{2029}\u{c0}\u{2030}]{0,40}"]) {
        let mut out = Vec::new();
        write_str(&mut out, &text);
        prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text.as_str());
        prop_assert!(!has_separator(&out));
        let mut again = Vec::new();
        write_raw(&mut again, &serde_json::to_vec(&text).unwrap());
        prop_assert_eq!(serde_json::from_slice::<String>(&again).unwrap(), text);
        prop_assert!(!has_separator(&again));
    }

    #[test]
    fn takes_what_serde_writes(value in any_json(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) }.unwrap();
        prop_assert!(accepts(&text));
    }

    #[test]
    fn agrees_on_damaged_texts(value in any_json(), at in any::<prop::sample::Index>(), byte in any::<u8>(), how in 0..3) {
        let mut text = serde_json::to_vec(&value).unwrap();
        let at = at.index(text.len());
        match how {
            0 => text[at] = byte & 0x7f,
            1 => { text.remove(at); }
            _ => text.insert(at, byte & 0x7f),
        }
        // What serde refuses for reasons that are not grammar is not compared.
        prop_assume!(std::str::from_utf8(&text).is_ok());
        prop_assert_eq!(accepts(&text), serde_accepts(&text), "{}", String::from_utf8_lossy(&text));
    }

    #[test]
    fn agrees_on_scraps(text in r#"[\[\]{}:,"0-9eE+.\\u truefalsn-]{0,24}"#) {
        prop_assert_eq!(accepts(text.as_bytes()), serde_accepts(text.as_bytes()), "{}", text);
    }

    #[test]
    fn strings_mean_the_same(text in any::<String>()) {
        let raw = serde_json::to_string(&text).unwrap();
        let read = Scan::new(raw.as_bytes()).string().unwrap();
        prop_assert_eq!(read.text(), text.as_str());
        let ours = quoted(&text);
        prop_assert_eq!(serde_json::from_slice::<String>(&ours).unwrap(), text);
    }

    #[test]
    fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        accepts(&bytes);
        if let Ok(text) = Scan::new(&bytes).string() {
            let _ = text.text();
        }
    }

    #[test]
    fn finds_the_first_special_byte(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let plain = bytes.iter().position(|&b| b == b'"' || b == b'\\' || b < 0x20).unwrap_or(bytes.len());
        prop_assert_eq!(plain_run(&bytes), plain);
    }
}

#[test]
fn depth_has_a_limit() {
    let nested = |levels: usize| [vec![b'['; levels], vec![b']'; levels]].concat();
    assert!(accepts(&nested(128)));
    assert_eq!(Scan::new(&nested(129)).skip(), Err(BrokenJson::Depth));
    assert_eq!(Scan::new(&vec![b'['; 1_000_000]).skip(), Err(BrokenJson::Depth));
}

#[test]
fn odd_but_valid() {
    for text in [r#""\ud800""#, "1e999", "-0", "0.0", "[]", "{}", " \n\t\r1 ", r#""\u0041\/""#] {
        assert!(accepts(text.as_bytes()), "{text}");
    }
    for text in
        ["", " ", "01", "1.", ".5", "+1", "1e", "nul", "tru", "'a'", "[1,]", "{,}", "{\"a\"}", "\"\u{1}\"", "1 2"]
    {
        assert!(!accepts(text.as_bytes()), "{text}");
    }
    let pair = Scan::new(br#""\ud83d\ude00 \ud83d \ud83dx""#).string().unwrap();
    assert_eq!(pair.text(), "😀 \u{FFFD} \u{FFFD}x");
}
