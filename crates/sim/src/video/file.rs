//! Result files behind links signed the way each provider signs. A link that has ended, or was
//! changed, is answered 403.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response};
use ring::hmac;

use super::mp4;
use crate::fault::response;
use crate::record::now_ms;

/// How a provider signs its links.
#[derive(Clone, Copy)]
pub(super) enum Signing {
    /// `Expires=<unix>&OSSAccessKeyId=…&Signature=…`
    Oss,
    /// `X-Tos-Date=…&X-Tos-Expires=<seconds>&X-Tos-Signature=…`
    Tos,
    /// No signature and no end.
    Plain,
}

const DAY: i64 = 86_400;

pub(super) fn now() -> i64 {
    now_ms() / 1000
}

/// A link to the file of a task, named by its length. `dead` has ended a minute ago.
pub(super) fn link(host: &str, id: &str, name: &str, signing: Signing, dead: bool) -> String {
    let path = format!("/video/files/{id}/{name}.mp4");
    let now = now();
    let query = match signing {
        Signing::Oss => {
            let expires = if dead { now - 60 } else { now + DAY };
            let signature = sign(&format!("{path}{expires}"));
            format!("?Expires={expires}&OSSAccessKeyId=LTAI5tSim&Signature={signature}")
        }
        Signing::Tos => {
            let date = stamp(if dead { now - DAY - 60 } else { now });
            let signature = sign(&format!("{path}{date}"));
            format!(
                "?X-Tos-Algorithm=TOS4-HMAC-SHA256&X-Tos-Credential=AKLTSim&X-Tos-Date={date}&X-Tos-Expires={DAY}&X-Tos-Signature={signature}"
            )
        }
        Signing::Plain if dead => "?gone=1".to_string(),
        Signing::Plain => String::new(),
    };
    format!("http://{host}{path}{query}")
}

/// Answers `GET /video/files/{id}/{seconds}-{kilobytes}.mp4`.
pub(super) fn answer(path: &str, query: &str, headers: &HeaderMap) -> Response<Bytes> {
    let name = path.strip_prefix("/video/files/").and_then(|rest| rest.rsplit_once('/')).map(|(_, name)| name);
    let name = name.and_then(|name| name.strip_suffix(".mp4")?.split_once('-'));
    let length = name.and_then(|(seconds, more)| Some((seconds.parse::<u32>().ok()?, more.parse::<u32>().ok()?)));
    let Some((seconds, kilobytes)) = length.filter(|(seconds, _)| *seconds <= 120) else {
        return response(404, "application/xml", Bytes::from_static(b"<Error><Code>NoSuchKey</Code></Error>"));
    };
    if !opens(path, query) {
        let body = b"<Error><Code>AccessDenied</Code><Message>Request has expired.</Message></Error>";
        return response(403, "application/xml", Bytes::from_static(body));
    }
    send(&mp4::longer(seconds, kilobytes), headers)
}

/// What a store says of a file that is on its way.
pub(super) fn early() -> Response<Bytes> {
    response(404, "application/xml", Bytes::from_static(b"<Error><Code>NoSuchKey</Code></Error>"))
}

/// A server in trouble.
pub(super) fn none(status: u16) -> Response<Bytes> {
    response(status, "text/html", Bytes::new())
}

/// A file, whole or the one range that was asked for.
pub(super) fn send(file: &[u8], headers: &HeaderMap) -> Response<Bytes> {
    let range = headers.get("range").and_then(|value| value.to_str().ok());
    let whole = file.len();
    let mut answer = match range.map(|range| part(range, whole)) {
        None => response(200, "video/mp4", Bytes::copy_from_slice(file)),
        Some(Some((from, to))) => {
            let mut answer = response(206, "video/mp4", Bytes::copy_from_slice(&file[from..=to]));
            if let Ok(value) = HeaderValue::try_from(format!("bytes {from}-{to}/{whole}")) {
                answer.headers_mut().insert("content-range", value);
            }
            answer
        }
        Some(None) => {
            let body = b"<Error><Code>InvalidRange</Code><RequestId>68D7512D</RequestId><HostId>files.internal</HostId></Error>";
            let mut answer = response(416, "application/xml", Bytes::from_static(body));
            if let Ok(value) = HeaderValue::try_from(format!("bytes */{whole}")) {
                answer.headers_mut().insert("content-range", value);
            }
            answer
        }
    };
    answer.headers_mut().insert("accept-ranges", HeaderValue::from_static("bytes"));
    answer
}

fn part(range: &str, whole: usize) -> Option<(usize, usize)> {
    let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (from, to) = match (from, to) {
        ("", last) => (whole.checked_sub(last.parse().ok()?)?, whole - 1),
        (from, "") => (from.parse().ok()?, whole - 1),
        (from, to) => (from.parse().ok()?, to.parse::<usize>().ok()?.min(whole - 1)),
    };
    (from <= to && to < whole).then_some((from, to))
}

fn opens(path: &str, query: &str) -> bool {
    let value = |name: &str| query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name);
    let text = |name: &str| value(name).map(|(_, value)| value).unwrap_or_default();
    if value("Expires").is_some() {
        let fresh = text("Expires").parse::<i64>().is_ok_and(|end| end > now());
        return fresh && sign(&format!("{path}{}", text("Expires"))) == text("Signature");
    }
    if value("X-Tos-Date").is_some() {
        let fresh = text("X-Tos-Date") > stamp(now() - DAY).as_str();
        return fresh && sign(&format!("{path}{}", text("X-Tos-Date"))) == text("X-Tos-Signature");
    }
    query.is_empty()
}

fn sign(text: &str) -> String {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, b"sim-link"), text.as_bytes());
    tag.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// `20260810T181347Z`.
pub(super) fn stamp(unix: i64) -> String {
    let (days, rest) = (unix.div_euclid(DAY), unix.rem_euclid(DAY));
    let (mut year, mut left) = (1970, days);
    let length = |year: i64| if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) { 366 } else { 365 };
    while left >= length(year) {
        left -= length(year);
        year += 1;
    }
    let mut month = 0;
    let months = [31, if length(year) == 366 { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    while left >= months[month] {
        left -= months[month];
        month += 1;
    }
    format!("{year:04}{:02}{:02}T{:02}{:02}{:02}Z", month + 1, left + 1, rest / 3600, rest % 3600 / 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_open_until_they_end() {
        for signing in [Signing::Oss, Signing::Tos, Signing::Plain] {
            for dead in [false, true] {
                let link = link("h", "t1", "5-0", signing, dead);
                let (path, query) =
                    link.strip_prefix("http://h").expect("a link").split_once('?').unwrap_or((&link[8..], ""));
                assert_eq!(opens(path, query), !dead, "{link}");
                assert_eq!(answer(path, query, &HeaderMap::new()).status().as_u16(), if dead { 403 } else { 200 });
            }
        }
        assert!(!opens("/video/files/t1/5.mp4", "Expires=9999999999&Signature=00"));
    }

    #[test]
    fn dates_and_ranges() {
        assert_eq!(stamp(1_786_385_627), "20260810T181347Z");
        assert_eq!(stamp(951_782_400), "20000229T000000Z");
        assert_eq!(
            [
                part("bytes=0-9", 100),
                part("bytes=90-", 100),
                part("bytes=-5", 100),
                part("bytes=200-", 100),
                part("x", 100)
            ],
            [Some((0, 9)), Some((90, 99)), Some((95, 99)), None, None]
        );
    }
}
