//! Whether a text is WebVTT: the header, and blocks of which each is a note, a style, a region or a
//! cue with its times. What a cue says is not looked at.

/// Why it is not, by its line, without repeating what stands there.
pub fn check_webvtt(text: &str) -> Result<(), String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = (1..).zip(text.lines());
    let header = lines.next().map_or("", |(_, line)| line);
    if !header.strip_prefix("WEBVTT").is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return Err("its first line is not WEBVTT".to_owned());
    }
    // What stands in the header ends with an empty line.
    let mut latest = 0;
    let mut block: Vec<(usize, &str)> = Vec::new();
    let mut in_header = true;
    for (number, line) in lines.chain([(0, "")]) {
        if !line.is_empty() {
            if in_header && line.contains("-->") {
                return Err(format!("line {number} is a cue right behind the header: an empty line is missing"));
            }
            block.push((number, line));
            continue;
        }
        if !std::mem::take(&mut in_header) && !block.is_empty() {
            latest = of_block(&block, latest)?;
        }
        block.clear();
    }
    Ok(())
}

/// When the latest cue begins, after this block.
fn of_block(block: &[(usize, &str)], latest: u64) -> Result<u64, String> {
    let (number, first) = block[0];
    let is = |word: &str| first.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
    if !first.contains("-->") && ["NOTE", "STYLE", "REGION"].into_iter().any(is) {
        return Ok(latest);
    }
    // A cue may have a name in a line of its own.
    let place = usize::from(!first.contains("-->"));
    let times = block.get(place).filter(|(_, line)| line.contains("-->"));
    let Some((number, line)) = times else { return Err(format!("line {number} begins a cue without times")) };
    let (begins, ends) =
        times_of(line).ok_or_else(|| format!("line {number} has no times such as 00:00:01.000 --> 00:00:02.000"))?;
    if ends <= begins {
        return Err(format!("the cue in line {number} ends before it begins"));
    }
    if begins < latest {
        return Err(format!("the cue in line {number} begins before the one in front of it"));
    }
    if block[place + 1..].iter().any(|(_, line)| line.contains("-->")) {
        return Err(format!("the cue in line {number} runs into the next one: an empty line is missing"));
    }
    Ok(begins)
}

fn times_of(line: &str) -> Option<(u64, u64)> {
    let (begins, rest) = line.split_once("-->")?;
    // Behind the end there may be settings.
    let ends = rest.split_whitespace().next()?;
    let spaced = begins.ends_with([' ', '\t']) && rest.starts_with([' ', '\t']);
    spaced.then_some((millis(begins.trim())?, millis(ends)?))
}

/// `mm:ss.ttt`, with hours of two digits or more before it.
fn millis(text: &str) -> Option<u64> {
    let (clock, thousandths) = text.split_once('.')?;
    let digits = |text: &str, least: usize, most: usize| {
        let fits = (least..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        fits.then(|| text.parse::<u64>().ok())?
    };
    let parts: Vec<&str> = clock.split(':').collect();
    let (hours, minutes, seconds) = match parts[..] {
        [minutes, seconds] => (0, minutes, seconds),
        [hours, minutes, seconds] => (digits(hours, 2, 6)?, minutes, seconds),
        _ => return None,
    };
    let below = |text: &str| digits(text, 2, 2).filter(|number| *number < 60);
    let whole = (hours * 60 + below(minutes)?) * 60 + below(seconds)?;
    Some(whole * 1_000 + digits(thousandths, 3, 3)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_players_take_is_webvtt() {
        for text in [
            "WEBVTT",
            "WEBVTT\n",
            "\u{feff}WEBVTT - a title\r\n\r\n00:01.000 --> 00:02.000\r\nHello\r\n",
            "WEBVTT\nKind: captions\n\n1\n00:00:00.000 --> 100:00:03.250 align:start line:0\nTwo\nlines\n\n\n2\n00:00:00.000 --> 00:00:04.000\n",
            "WEBVTT\n\nNOTE what follows\nis a note\n\nSTYLE\n::cue { color: red }\n\nNOTE\n\n00:59:59.999 --> 01:00:00.000\nx",
        ] {
            assert_eq!(check_webvtt(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_is_not_is_refused_by_its_line() {
        let cue = "00:00:00.000 --> 00:00:03.000";
        for (text, why) in [
            ("".to_owned(), "first line"),
            ("Here are your subtitles:\n\nWEBVTT\n".to_owned(), "first line"),
            ("```vtt\nWEBVTT\n```".to_owned(), "first line"),
            ("WEBVTTX\n".to_owned(), "first line"),
            (format!("1\n{cue}\nHello"), "first line"),
            (format!("WEBVTT\n{cue}\nHello"), "line 2 is a cue right behind"),
            ("WEBVTT\n\nI cannot translate that.".to_owned(), "line 3 begins a cue without times"),
            ("WEBVTT\n\n1\n".to_owned(), "line 3 begins a cue without times"),
            ("WEBVTT\n\n1\nHello\n".to_owned(), "line 3 begins a cue without times"),
            ("WEBVTT\n\n00:00:00,000 --> 00:00:03,000\nHello".to_owned(), "line 3 has no times"),
            ("WEBVTT\n\n00:00.000-->00:03.000\nHello".to_owned(), "line 3 has no times"),
            ("WEBVTT\n\n00:00.00 --> 00:03.000\nHello".to_owned(), "line 3 has no times"),
            ("WEBVTT\n\n00:60.000 --> 01:03.000\nHello".to_owned(), "line 3 has no times"),
            ("WEBVTT\n\n1:00:00.000 --> 1:00:03.000\nHello".to_owned(), "line 3 has no times"),
            ("WEBVTT\n\n00:03.000 -->\nHello".to_owned(), "line 3 has no times"),
            ("WEBVTT\n\n00:03.000 --> 00:03.000\nHello".to_owned(), "line 3 ends before"),
            ("WEBVTT\n\n00:03.000 --> 00:04.000\na\n\n00:02.000 --> 00:05.000\nb".to_owned(), "line 6 begins before"),
            (format!("WEBVTT\n\n{cue}\nHello\n{cue}\nHello"), "line 3 runs into"),
        ] {
            let said = check_webvtt(&text).expect_err(&text);
            assert!(said.contains(why) && !said.contains("Hello"), "{text:?}: {said}");
        }
    }
}
