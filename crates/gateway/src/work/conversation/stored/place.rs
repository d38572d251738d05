//! Names of fields in a request that was made whole, as its client knows them: the items from
//! before stand in front of its own, so a place in its input has another number there.

use crate::refusal::Refusal;

const INPUT: &str = "input[";

/// Where a client's own items stand in the whole request.
#[derive(Clone, Copy, Debug, Default)]
pub struct ItemPlace {
    /// How many items are in front.
    pub before: usize,
    /// How many are its own.
    pub own: usize,
    /// Its input is one text.
    pub text: bool,
    /// The field by which it names what was said before.
    pub refers: Option<&'static str>,
}

impl ItemPlace {
    /// A refusal with the names of the request as it was sent.
    pub fn as_sent(self, mut refusal: Refusal) -> Refusal {
        if self.before == 0 && !self.text {
            return refusal;
        }
        refusal.message = self.renamed(&refusal.message);
        refusal.param = refusal.param.map(|param| self.renamed(&param));
        refusal
    }

    fn renamed(self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(INPUT) {
            let (before, found) = rest.split_at(at);
            out.push_str(before);
            let inside = &found[INPUT.len()..];
            let digits = inside.bytes().take_while(u8::is_ascii_digit).count();
            let number = inside[..digits].parse::<usize>().ok().filter(|_| inside[digits..].starts_with(']'));
            // The end of a longer name is another field.
            let whole = !before.ends_with(|last: char| last.is_alphanumeric() || last == '_' || last == '.');
            let Some(number) = number.filter(|_| whole) else {
                out.push_str(INPUT);
                rest = inside;
                continue;
            };
            rest = &inside[digits + 1..];
            if (self.before..self.before + self.own).contains(&number) && !self.text {
                out.push_str(&format!("{INPUT}{}]", number - self.before));
                continue;
            }
            // Nothing below it is a place that the client wrote.
            out.push_str(if number < self.before { self.refers.unwrap_or("input") } else { "input" });
            let path = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'[' | b']');
            loop {
                rest = &rest[rest.bytes().take_while(path).count()..];
                match rest.strip_prefix('.') {
                    Some(more) if more.starts_with(|first: char| first.is_ascii_alphabetic()) => rest = more,
                    _ => break,
                }
            }
        }
        out.push_str(rest);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_named_as_they_were_sent() {
        let place = ItemPlace { before: 6, own: 2, text: false, refers: Some("previous_response_id") };
        for (whole, sent) in [
            ("input[7].content[0]", "input[1].content[0]"),
            ("input[6]", "input[0]"),
            ("`input[2].content[0].text` is missing.", "`previous_response_id` is missing."),
            ("See input[2].content. Or input[6]!", "See previous_response_id. Or input[0]!"),
            ("my_input[7] and tools[7], input[x], input[", "my_input[7] and tools[7], input[x], input["),
            ("input[8].content", "input"),
            ("max_output_tokens", "max_output_tokens"),
        ] {
            assert_eq!(place.renamed(whole), sent);
        }
        let text = ItemPlace { before: 1, own: 1, text: true, refers: Some("conversation") };
        assert_eq!(text.renamed("`input[1].content` is wrong"), "`input` is wrong");
        assert_eq!(text.renamed("input[0]"), "conversation");
    }
}
