//! The supplier's envelope: `{"code": 200, …, "data": …}` around an answer, `{"detail": …}` around
//! an error. Only `code`, `data` and the error's text are looked at; links, parameters and other
//! supplier fields stay behind.

use super::{CheckedData, NotJson, PlaceLookup as _};
use bytes::Bytes;
use std::borrow::Cow;
use tollgate_wire::json::Scan;

/// An answer of status 200.
#[derive(Debug)]
pub struct Envelope {
    /// The supplier's own status; absent counts as success.
    pub code: Option<i64>,
    /// Absent counts as null.
    pub data: Option<CheckedData>,
}

/// Reads an answer whole; the error says that it is not a JSON object.
pub fn read_envelope(bytes: &Bytes) -> Result<Envelope, NotJson> {
    let mut scan = Scan::new(bytes);
    let (mut code, mut data) = (None, None);
    scan.object(|key, scan| -> Result<(), NotJson> {
        let span = scan.span()?;
        // Of two members with one name the first counts.
        if key.is("code") && code.is_none() {
            code = std::str::from_utf8(&bytes[span]).ok().and_then(|text| text.parse().ok());
        } else if key.is("data") && data.is_none() {
            data = Some(bytes.slice(span));
        }
        Ok(())
    })?;
    scan.end()?;
    Ok(Envelope { code, data: data.map(CheckedData::read).transpose()? })
}

/// What an error of the supplier says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SupplierError {
    pub message: String,
    /// The parameter that the last `loc` of a shape error names.
    pub param: Option<String>,
    /// `{"detail": "…"}`, a text and nothing else: what the supplier's framework says of a path it
    /// does not have.
    pub bare: bool,
}

/// Reads `{"detail": {"message"}}`, `{"detail": [{"loc", "msg"}]}`, `{"detail": "…"}` or
/// `{"message"}`; anything else says nothing.
pub fn read_refused(bytes: &[u8]) -> SupplierError {
    let Ok(body) = CheckedData::read(Bytes::copy_from_slice(bytes)) else { return SupplierError::default() };
    let text = |at: &str| body.find(at).filter(|found| found.is_text()).and_then(|found| found.plain());
    if let Some(detail) = text("/detail") {
        return SupplierError { message: detail.into_owned(), param: None, bare: true };
    }
    let message = ["/detail/message", "/detail/0/msg", "/message"].into_iter().find_map(text);
    let param = text("/detail/0/loc/-1").map(Cow::into_owned);
    SupplierError { message: message.unwrap_or_default().into_owned(), param, bare: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_is_opened_without_touching_its_content() {
        let text = r#" {"code":200,"request_id":"r","data" : {"id": 7411193113223371043, "x":[1.10]} ,"cache_url":"https://x"} "#;
        let envelope = read_envelope(&Bytes::from_static(text.as_bytes())).expect("an envelope");
        assert_eq!(envelope.code, Some(200));
        assert_eq!(&envelope.data.expect("data").raw()[..], br#"{"id": 7411193113223371043, "x":[1.10]}"#);
        let bare = read_envelope(&Bytes::from_static(b"{}")).expect("an envelope");
        assert!(bare.code.is_none() && bare.data.is_none());
        for broken in ["", "[]", "<html>", "{\"data\":{}", "{\"data\":{}}x", "{\"data\":01}"] {
            assert!(read_envelope(&Bytes::copy_from_slice(broken.as_bytes())).is_err(), "{broken}");
        }
    }

    #[test]
    fn errors_of_every_shape_are_read() {
        let read = |text: &str| {
            let refused = read_refused(text.as_bytes());
            (refused.message, refused.param, refused.bare)
        };
        let plain = |text: &str| (text.to_owned(), None, false);
        assert_eq!(read(r#"{"detail":{"code":400,"message":"Request failed."}}"#), plain("Request failed."));
        assert_eq!(read(r#"{"code":400,"message":"No."}"#), plain("No."));
        assert_eq!(read(r#"{"detail":"Not Found"}"#), ("Not Found".to_owned(), None, true));
        let shape = r#"{"detail":[{"loc":["query","cursor"],"msg":"value is not a valid integer","type":"t"}]}"#;
        assert_eq!(read(shape), ("value is not a valid integer".to_owned(), Some("cursor".to_owned()), false));
        assert_eq!(read("<html>502</html>"), plain(""));
        assert_eq!(read("[]"), plain(""));
    }
}
