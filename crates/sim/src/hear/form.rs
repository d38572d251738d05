//! A form, taken apart in the simplest way that is right: the beginning and the end of one that is
//! too long are enough, since its file lies between them.

use super::Heard;

pub(super) struct Form {
    pub fields: Vec<(String, String)>,
    pub file: Option<FilePart>,
}

pub(super) struct FilePart {
    pub field: String,
    pub name: String,
    pub content_type: String,
    pub start: Vec<u8>,
    pub length: usize,
}

impl Form {
    pub fn read(heard: &Heard<'_>) -> Result<Form, String> {
        let kind = heard.header("content-type");
        let Some(boundary) = kind.strip_prefix("multipart/form-data; boundary=").filter(|mark| !mark.is_empty()) else {
            return Err("the content type is no form with a boundary".to_string());
        };
        if heard.header("content-length").parse() != Ok(heard.length) {
            return Err("the length was not announced".to_string());
        }
        let mark = format!("--{boundary}");
        let mut form = Form { fields: Vec::new(), file: None };
        let mut rest = heard.body.strip_prefix(mark.as_bytes()).ok_or("the form does not begin with its boundary")?;
        let between = format!("\r\n{mark}");
        loop {
            // Line ends may follow the last boundary: nobody reads them.
            if rest.strip_prefix(b"--").is_some_and(|more| more.iter().all(|byte| matches!(byte, b'\r' | b'\n'))) {
                return Ok(form);
            }
            rest = rest.strip_prefix(b"\r\n").ok_or("no line end behind a boundary")?;
            let head_end = place(rest, b"\r\n\r\n").ok_or("headers without an end")?;
            let head = std::str::from_utf8(&rest[..head_end]).map_err(|_| "headers are not text")?.to_string();
            rest = &rest[head_end + 4..];
            let end = place(rest, between.as_bytes());
            let name = quoted(&head, "name").ok_or("a part without a name")?;
            match (quoted(&head, "filename"), end) {
                (Some(file_name), _) => {
                    let before = heard.body.len() - rest.len();
                    let behind = place(&heard.end, between.as_bytes());
                    let length = match (end, behind) {
                        (Some(end), _) => end,
                        (None, Some(behind)) => heard.length - before - (heard.end.len() - behind),
                        (None, None) => return Err("the file does not end".to_string()),
                    };
                    let start = rest[..length.min(rest.len()).min(64)].to_vec();
                    let content_type = head.split("Content-Type: ").nth(1).unwrap_or_default().to_string();
                    form.file = Some(FilePart { field: name, name: file_name, content_type, start, length });
                    if end.is_none() {
                        rest = &heard.end[behind.unwrap_or_default() + between.len()..];
                        continue;
                    }
                }
                (None, Some(end)) => {
                    let text = std::str::from_utf8(&rest[..end]).map_err(|_| "a field is not text")?;
                    form.fields.push((name, text.to_string()));
                }
                (None, None) => return Err("the form does not end".to_string()),
            }
            let end = end.unwrap_or_default();
            rest = &rest[end + between.len()..];
        }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str())
    }
}

fn place(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn quoted(head: &str, name: &str) -> Option<String> {
    let (_, rest) = head.split_once(&format!("; {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value.to_string())
}
