//! A form that we send: our own boundary and names, fields as text, files from where they were put
//! down. Its length is known before it is sent.

use super::{Payload, PayloadPart};
use bytes::{Bytes, BytesMut};
use http::HeaderValue;

/// A form being written.
#[derive(Debug)]
pub struct FormPayload {
    boundary: String,
    parts: Vec<PayloadPart>,
    /// What stands before the next part.
    text: BytesMut,
}

impl FormPayload {
    /// `drawn` is random: whoever wrote the fields and files could not know the boundary, so it
    /// stands in none of them.
    pub fn new(drawn: [u8; 16]) -> FormPayload {
        let boundary = format!("tollgate-{:032x}", u128::from_be_bytes(drawn));
        FormPayload { boundary, parts: Vec::new(), text: BytesMut::new() }
    }

    /// A form whose file still arrives. Its boundary is short, so that fields which the caller
    /// wrote behind the file take no more room here than they did there.
    pub(crate) fn passing(drawn: [u8; 16]) -> FormPayload {
        let boundary = format!("tg{:016x}", u128::from_be_bytes(drawn) >> 64);
        FormPayload { boundary, parts: Vec::new(), text: BytesMut::new() }
    }

    /// What follows the file of such a form.
    pub(crate) fn behind_file(drawn: [u8; 16]) -> FormPayload {
        FormPayload { text: BytesMut::from(&b"\r\n"[..]), ..FormPayload::passing(drawn) }
    }

    #[must_use]
    pub fn field(mut self, name: &str, value: &str) -> FormPayload {
        self.head(name, None);
        self.text.extend_from_slice(value.as_bytes());
        self.text.extend_from_slice(b"\r\n");
        self
    }

    /// `file_name` and `content_type` are ours, not the caller's.
    #[must_use]
    pub fn file(mut self, name: &str, file_name: &str, content_type: &str, file: PayloadPart) -> FormPayload {
        self.head(name, Some((file_name, content_type)));
        self.parts.push(Bytes::from(std::mem::take(&mut self.text)).into());
        self.parts.push(file);
        self.text.extend_from_slice(b"\r\n");
        self
    }

    /// All up to the first byte of a file, which is the next to come.
    pub(crate) fn up_to_file(mut self, name: &str, file_name: &str, content_type: &str) -> Bytes {
        self.head(name, Some((file_name, content_type)));
        self.text.freeze()
    }

    /// All that was written, and the last boundary without a line end.
    pub(crate) fn end(mut self) -> Bytes {
        let end = format!("--{}--", self.boundary);
        self.text.extend_from_slice(end.as_bytes());
        self.text.freeze()
    }

    fn head(&mut self, name: &str, file: Option<(&str, &str)>) {
        let named = format!("--{}\r\nContent-Disposition: form-data; name=\"{}\"", self.boundary, quoted(name));
        self.text.extend_from_slice(named.as_bytes());
        if let Some((file_name, content_type)) = file {
            let file = format!("; filename=\"{}\"\r\nContent-Type: {content_type}", quoted(file_name));
            self.text.extend_from_slice(file.as_bytes());
        }
        self.text.extend_from_slice(b"\r\n\r\n");
    }

    /// The value of the Content-Type header.
    pub fn content_type(&self) -> HeaderValue {
        let value = format!("multipart/form-data; boundary={}", self.boundary);
        HeaderValue::try_from(value).unwrap_or_else(|_| HeaderValue::from_static("multipart/form-data"))
    }

    /// The body of the request.
    pub fn payload(mut self) -> Payload {
        let end = format!("--{}--\r\n", self.boundary);
        self.text.extend_from_slice(end.as_bytes());
        self.parts.push(Bytes::from(self.text).into());
        Payload::of_parts(self.parts)
    }
}

/// A name as browsers write it in a form.
fn quoted(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}
