//! AWS Signature Version 4: a request is signed with a key that is made for one day, one region and
//! one service.

use crate::{BaseUrl, Outgoing, Secret};
use http::HeaderValue;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use ring::digest::{SHA256, digest};
use ring::hmac;
use std::time::{Duration, UNIX_EPOCH};

/// An access key and its secret, for one service in one region.
#[derive(Clone, Debug)]
pub(crate) struct AwsKey {
    access: String,
    secret: Secret,
    region: String,
    service: &'static str,
}

/// What is signed of a request.
struct Canonical<'a> {
    method: &'a str,
    path: &'a str,
    query: &'a str,
    /// By name, in small letters and in order.
    headers: &'a [(&'a str, &'a str)],
    body: &'a [u8],
}

const DATE: &str = "x-amz-date";
/// The region of addresses that name none, such as a proxy's.
const USUAL_REGION: &str = "us-east-1";

impl AwsKey {
    pub fn new(access: &str, secret: &str, service: &'static str, base: &BaseUrl) -> AwsKey {
        // bedrock-runtime.eu-west-1.amazonaws.com
        let host = base.host();
        let named = host.strip_suffix(".amazonaws.com").and_then(|host| host.split('.').nth(1));
        let region = named.unwrap_or(USUAL_REGION).to_owned();
        AwsKey { access: access.to_owned(), secret: Secret::new(secret), region, service }
    }

    /// Adds date and signature; `None` where the request has no host.
    pub fn sign(&self, request: &mut Outgoing, body: &[u8], now: i64) -> Option<()> {
        let moment = moment(now);
        let host = request.uri().authority()?.as_str().to_owned();
        let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("").to_owned();
        let mut headers = vec![(HOST.as_str(), host.as_str()), (DATE, moment.as_str())];
        if !kind.is_empty() {
            headers.insert(0, (CONTENT_TYPE.as_str(), kind.as_str()));
        }
        let canonical = Canonical {
            method: request.method().as_str(),
            path: request.uri().path(),
            query: request.uri().query().unwrap_or(""),
            headers: &headers,
            body,
        };
        let mut value = HeaderValue::try_from(self.authorization(&canonical, &moment)).ok()?;
        value.set_sensitive(true);
        let date = HeaderValue::try_from(&moment).ok()?;
        request.headers_mut().insert(AUTHORIZATION, value);
        request.headers_mut().insert(DATE, date);
        Some(())
    }

    fn authorization(&self, canonical: &Canonical<'_>, moment: &str) -> String {
        let names: Vec<&str> = canonical.headers.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let lines: String =
            canonical.headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        let whole = [
            canonical.method,
            &encoded(canonical.path),
            &in_order(canonical.query),
            &lines,
            &names,
            &hex(digest(&SHA256, canonical.body).as_ref()),
        ]
        .join("\n");
        let day = &moment[..8];
        let scope = format!("{day}/{}/{}/aws4_request", self.region, self.service);
        let signed =
            format!("AWS4-HMAC-SHA256\n{moment}\n{scope}\n{}", hex(digest(&SHA256, whole.as_bytes()).as_ref()));
        let tag = |key: &[u8], text: &str| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes());
        let mut key = tag(format!("AWS4{}", self.secret.expose()).as_bytes(), day);
        for part in [self.region.as_str(), self.service, "aws4_request", &signed] {
            key = tag(key.as_ref(), part);
        }
        let signature = hex(key.as_ref());
        format!("AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}", self.access)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A path that is encoded for the request is encoded once more for the signature.
fn encoded(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte);
    path.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The parameters of a query by name and value.
fn in_order(query: &str) -> String {
    let mut pairs: Vec<String> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| if pair.contains('=') { pair.to_owned() } else { format!("{pair}=") })
        .collect();
    pairs.sort();
    pairs.join("&")
}

/// `20150830T123600Z`.
fn moment(now: i64) -> String {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let at = UNIX_EPOCH + Duration::from_millis(u64::try_from(now).unwrap_or(0));
    // Sun, 30 Aug 2015 12:36:00 GMT
    let text = httpdate::fmt_http_date(at);
    let month = MONTHS.find(&text[8..11]).map_or(1, |place| place / 3 + 1);
    format!("{}{month:02}{}T{}Z", &text[12..16], &text[5..7], text[17..25].replace(':', ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outgoing::outgoing;
    use bytes::Bytes;
    use http::Method;

    /// 30 August 2015, 12:36:00 UTC, the moment of all of them.
    const NOW: i64 = 1_440_938_160_000;
    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

    fn key(service: &'static str) -> AwsKey {
        let base = BaseUrl::parse("https://example.amazonaws.com").unwrap();
        AwsKey { region: USUAL_REGION.to_owned(), ..AwsKey::new("AKIDEXAMPLE", SECRET, service, &base) }
    }

    /// The published test suite (get-vanilla, post-vanilla, get-vanilla-query-order-key-case), and
    /// the example of the documentation.
    #[test]
    fn published_signatures() {
        let host = [("host", "example.amazonaws.com"), ("x-amz-date", "20150830T123600Z")];
        let form = "application/x-www-form-urlencoded; charset=utf-8";
        let iam = [("content-type", form), ("host", "iam.amazonaws.com"), ("x-amz-date", "20150830T123600Z")];
        let users = "Action=ListUsers&Version=2010-05-08";
        type Row<'r> = (&'r str, &'r str, &'static str, &'r [(&'r str, &'r str)], &'r str);
        let rows: [Row<'_>; 4] = [
            ("GET", "", "service", &host, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
            ("POST", "", "service", &host, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
            (
                "GET",
                "Param2=value2&Param1=value1",
                "service",
                &host,
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ),
            ("GET", users, "iam", &iam, "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"),
        ];
        for (method, query, service, headers, signature) in rows {
            let canonical = Canonical { method, path: "/", query, headers, body: b"" };
            let value = key(service).authorization(&canonical, &moment(NOW));
            assert!(value.ends_with(&format!("Signature={signature}")), "{method} {query}: {value}");
            let scope = format!("Credential=AKIDEXAMPLE/20150830/us-east-1/{service}/aws4_request, SignedHeaders=");
            assert!(value.contains(&scope), "{value}");
        }
    }

    /// The signature was made with another implementation (Python's hmac and hashlib).
    #[test]
    fn a_model_with_a_colon_in_its_name() {
        let base = BaseUrl::parse("https://bedrock-runtime.us-east-1.amazonaws.com").unwrap();
        let key = AwsKey::new("AKIDEXAMPLE", SECRET, "bedrock", &base);
        let uri = base.join("/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse").unwrap();
        let body = br#"{"messages":[]}"#;
        let mut request = outgoing(Method::POST, uri, "*/*", Bytes::from_static(body));
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        key.sign(&mut request, body, NOW).unwrap();
        let value = request.headers()["authorization"].to_str().unwrap();
        let signature = "Signature=b103ed8afc3664d93d04d6a557c1a620a6e218225be2abad17ceda3e1569a3ec";
        assert!(value.ends_with(signature), "{value}");
        assert!(value.contains("SignedHeaders=content-type;host;x-amz-date"), "{value}");
        assert_eq!(request.headers()["x-amz-date"], "20150830T123600Z");
        assert!(request.headers()["authorization"].is_sensitive());
        assert!(!format!("{key:?}").contains("wJalr"));
    }

    #[test]
    fn the_region_is_that_of_the_address() {
        for (url, region) in [
            ("https://bedrock-runtime.eu-west-1.amazonaws.com", "eu-west-1"),
            ("https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
            ("http://127.0.0.1:9/x", "us-east-1"),
        ] {
            let key = AwsKey::new("a", "s", "bedrock", &BaseUrl::parse(url).unwrap());
            assert_eq!(key.region, region, "{url}");
        }
    }
}
