//! A small writer of PDF: lines of text on A4 pages, in two fonts that every reader has. Those have
//! Western letters only; any other letter is written as its code point, so that nothing is left out
//! in silence.

use std::fmt::Write as _;

/// A line and how it is set.
pub struct PdfLine {
    font: &'static str,
    size: u32,
    text: String,
}

impl PdfLine {
    pub fn title(text: String) -> PdfLine {
        PdfLine { font: "F1", size: 16, text }
    }

    pub fn heading(text: String) -> PdfLine {
        PdfLine { font: "F1", size: 12, text }
    }

    pub fn text(text: String) -> PdfLine {
        PdfLine { font: "F1", size: 10, text }
    }

    /// In letters of one width.
    pub fn columns(text: String) -> PdfLine {
        PdfLine { font: "F2", size: 9, text }
    }
}

const PAGE_LINES: usize = 56;

/// The whole document.
pub fn write(lines: &[PdfLine]) -> Vec<u8> {
    let pages: Vec<&[PdfLine]> = if lines.is_empty() { vec![&[]] } else { lines.chunks(PAGE_LINES).collect() };
    let kids: Vec<String> = (0..pages.len()).map(|number| format!("{} 0 R", 5 + 2 * number)).collect();
    let font = |name: &str| format!("<< /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding >>");
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), pages.len()),
        font("Helvetica"),
        font("Courier"),
    ];
    for (number, page) in pages.iter().enumerate() {
        let content = content(page, number + 1, pages.len());
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> /Contents {} 0 R >>",
            6 + 2 * number
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    let mut text = String::from("%PDF-1.4\n");
    let mut offsets = Vec::with_capacity(objects.len());
    for (number, object) in (1..).zip(&objects) {
        offsets.push(text.len());
        let _ = write!(text, "{number} 0 obj\n{object}\nendobj\n");
    }
    let table = text.len();
    let _ = write!(text, "xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for offset in offsets {
        let _ = writeln!(text, "{offset:010} 00000 n ");
    }
    let _ = write!(text, "trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n", objects.len() + 1);
    text.into_bytes()
}

fn content(lines: &[PdfLine], number: usize, of: usize) -> String {
    let mut text = String::from("BT\n");
    let mut height = 800;
    for line in lines {
        let _ = writeln!(text, "/{} {} Tf 1 0 0 1 48 {height} Tm ({}) Tj", line.font, line.size, shown(&line.text));
        height -= 13;
    }
    let _ = write!(text, "/F1 8 Tf 1 0 0 1 48 30 Tm (Page {number} of {of}) Tj\nET");
    text
}

/// Text as it stands in a document: ASCII, with octal codes for the letters of Western Europe.
fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars().take(400) {
        match c {
            '(' | ')' | '\\' => shown.extend(['\\', c]),
            ' '..='~' => shown.push(c),
            '\u{a0}'..='\u{ff}' => {
                let _ = write!(shown, "\\{:03o}", u32::from(c));
            }
            c => {
                let _ = write!(shown, "[U+{:04X}]", u32::from(c));
            }
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_shown_or_named() {
        assert_eq!(shown("a(b)\\ é 张\n"), "a\\(b\\)\\\\ \\351 [U+5F20][U+000A]");
    }
}
