//! Cuts a catalog file into pages, one per model, so that a reload reads only those that changed.
//! Cutting is a matter of speed alone: a file that is not plainly made of such pages (a model in
//! two places, a text over several lines, broken syntax) is read as a whole, with the same result
//! and the same mistakes.

/// The tables of one model, as they stand in a file.
pub(crate) struct ModelPage<'t> {
    pub(crate) model: &'t str,
    /// Lines of the file before it.
    pub(crate) line: usize,
    pub(crate) text: &'t str,
}

/// What a file consists of: pages, and the rest with an empty line for each line of a page.
pub(crate) struct Cut<'t> {
    pub(crate) pages: Vec<ModelPage<'t>>,
    pub(crate) rest: String,
}

/// A header line, `[…]` or `[[…]]`, where it stands.
struct Header<'t> {
    at: usize,
    line: usize,
    text: &'t str,
}

/// `None`: the file has to be read as a whole.
pub(crate) fn cut(text: &str) -> Option<Cut<'_>> {
    let headers = headers(text)?;
    let mut pages: Vec<ModelPage<'_>> = Vec::new();
    let first = headers.first().map_or(text.len(), |first| first.at);
    let mut rest = text[..first].to_owned();
    let mut rest_lines = headers.first().map_or(0, |first| first.line);
    // Where the last page begins, while nothing but its own tables has come since.
    let mut open: Option<usize> = None;
    for (number, header) in headers.iter().enumerate() {
        let next = headers.get(number + 1);
        let end = next.map_or(text.len(), |next| next.at);
        match model_of(header.text)? {
            Named::Other => {
                open = None;
                // Back to the line where the file is by now.
                rest.extend(std::iter::repeat_n('\n', header.line - rest_lines));
                rest.push_str(&text[header.at..end]);
                rest_lines = next.map_or(header.line, |next| next.line);
            }
            Named::Whole(model) => {
                open = Some(header.at);
                pages.push(ModelPage { model, line: header.line, text: &text[header.at..end] });
            }
            Named::Inside(model) => {
                let begin = open?;
                let page = pages.last_mut().filter(|page| page.model == model)?;
                page.text = &text[begin..end];
            }
        }
    }
    let mut names: Vec<&str> = pages.iter().map(|page| page.model).collect();
    names.sort_unstable();
    names.windows(2).all(|pair| pair[0] != pair[1]).then_some(Cut { pages, rest })
}

/// Which table a header opens.
enum Named<'t> {
    /// `[model.NAME]`
    Whole(&'t str),
    /// A table of a model, `[model.NAME.…]` or `[[model.NAME.…]]`.
    Inside(&'t str),
    Other,
}

/// `None` for a header that is not written in the plain way.
fn model_of(header: &str) -> Option<Named<'_>> {
    let (inner, is_list) = match header.strip_prefix("[[") {
        Some(inner) => (inner, true),
        None => (header.strip_prefix('[')?, false),
    };
    let Some(key) = inner.strip_prefix("model.") else {
        // Another way to write it is for the whole reader.
        let other = inner.trim_start_matches([' ', '\t', '"', '\'']);
        return (!other.starts_with("model")).then_some(Named::Other);
    };
    let (name, after) = match key.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').filter(|(name, _)| !name.contains('\\'))?,
        None => key.split_at(key.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'))?),
    };
    match after.as_bytes().first()? {
        b']' if !is_list && !name.is_empty() => Some(Named::Whole(name)),
        b'.' if !name.is_empty() => Some(Named::Inside(name)),
        _ => None,
    }
}

/// Every header line: a line that begins with a bracket outside of any value.
fn headers(text: &str) -> Option<Vec<Header<'_>>> {
    let bytes = text.as_bytes();
    let mut headers = Vec::new();
    let (mut at, mut line) = (0, 0);
    while at < bytes.len() {
        let begin = at;
        let first = begin + bytes[begin..].iter().take_while(|byte| matches!(**byte, b' ' | b'\t')).count();
        let is_header = bytes.get(first) == Some(&b'[');
        let lines_before = line;
        at = end_of_line(bytes, first, is_header, &mut line)?;
        if is_header {
            headers.push(Header { at: begin, line: lines_before, text: text[first..at].trim_end() });
        }
    }
    Some(headers)
}

/// The statements of a text, one after the other: each a header, a key with its value, or a line
/// without either. `None` as for headers.
pub(crate) fn statements(text: &str) -> Option<Vec<&str>> {
    let bytes = text.as_bytes();
    let mut all = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let begin = at;
        let first = begin + bytes[begin..].iter().take_while(|byte| matches!(**byte, b' ' | b'\t')).count();
        at = end_of_line(bytes, first, bytes.get(first) == Some(&b'['), &mut 0)?;
        all.push(&text[begin..at]);
    }
    Some(all)
}

/// What stands behind the name of the model in a header of its page: `change.tier`, or nothing.
pub(crate) fn inside(header: &str) -> Option<&str> {
    let Named::Inside(name) = model_of(header.trim())? else { return None };
    let key = header.trim().trim_start_matches('[').strip_prefix("model.")?.trim_start_matches('"');
    let behind = key.strip_prefix(name)?.trim_start_matches('"').strip_prefix('.')?;
    behind.split_once(']').map(|(path, _)| path.trim())
}

/// Behind the line end that ends this statement; brackets, braces and texts in it are stepped over.
/// `None` when it is not closed, or has a text over several lines.
fn end_of_line(bytes: &[u8], mut at: usize, is_header: bool, line: &mut usize) -> Option<usize> {
    let mut depth = 0_u32;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\n' => {
                *line += 1;
                if depth == 0 {
                    return Some(at);
                }
                if is_header {
                    return None;
                }
            }
            b'#' => at += bytes[at..].iter().take_while(|byte| **byte != b'\n').count(),
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.checked_sub(1)?,
            b'"' | b'\'' => at = end_of_text(bytes, at, *byte)?,
            _ => {}
        }
    }
    (depth == 0).then_some(at)
}

fn end_of_text(bytes: &[u8], mut at: usize, quote: u8) -> Option<usize> {
    if bytes[at..].starts_with(&[quote, quote]) {
        // Three quotes, unless it is an empty text.
        return None;
    }
    loop {
        match bytes.get(at)? {
            b'\n' => return None,
            b'\\' if quote == b'"' => at += 2,
            byte if *byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let Some(cut) = cut(text) else { return "whole".to_owned() };
        let page = |page: &ModelPage<'_>| format!("{}@{}:{}", page.model, page.line, page.text.lines().count());
        let pages: Vec<String> = cut.pages.iter().map(page).collect();
        format!("{} | {}", pages.join(" "), cut.rest.replace('\n', "/"))
    }

    #[test]
    fn a_file_is_cut_where_another_model_begins() {
        for (text, want) in [
            ("", " | "),
            ("a = 1\n", " | a = 1/"),
            ("[model.a]\nx = 1\n[model.\"b.c\"]\ny = 2\n", "a@0:2 b.c@2:2 | "),
            (
                "# top\n[model.a]\n[[model.a.tier]]\n[model.a.list]\n[group.g]\nm = 1\n[model.b]\n",
                "a@1:3 b@6:1 | # top////[group.g]/m = 1/",
            ),
            ("[model.a]\nr = [\n  { p = \"x\" },\n  [1],\n]\n# [model.c]\n[model.b]\n", "a@0:6 b@6:1 | "),
            ("[model.a]\nx = \"[model.b]\" # ]\ny = '''\n", "whole"),
            ("[model.a]\n[model.b]\n[model.a.list]\n", "whole"),
            ("[model.a]\n[group.g]\n[model.a.list]\n", "whole"),
            ("[model.a]\n[model.a]\n", "whole"),
            ("[model.a.list]\n", "whole"),
            ("[[model.a]]\n", "whole"),
            ("[model]\n", "whole"),
            ("[ model.a ]\n", "whole"),
            ("[\"model\".a]\n", "whole"),
            ("[model.'a']\n", "whole"),
            ("[model.\"a\\\"b\"]\n", "whole"),
            ("[model.a]\nx = [\n", "whole"),
            ("[model.a]\nx = \"\"\"\n[model.b]\n\"\"\"\n", "whole"),
            ("[model.a]\nx = ]\n[model.b]\n", "whole"),
            ("[model.a\n[model.b]\n", "whole"),
        ] {
            assert_eq!(shown(text), want, "{text}");
        }
    }
}
