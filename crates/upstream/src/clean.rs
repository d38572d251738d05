//! Makes a provider's text safe for a client's eyes: no links, hosts, request ids, keys or paths.
//!
//! Word by word, in one pass over a bounded prefix: a redactor built of clever patterns has
//! stopped a gateway before.

/// The text without links, hosts, request ids and keys, at most `most` bytes.
pub fn safe_text(text: &str, most: usize) -> String {
    let text = &text[..text.floor_char_boundary(most.saturating_mul(4))];
    let mut out = String::with_capacity(text.len().min(most));
    let mut names_id = false;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        clean_word(word, &mut names_id, &mut out);
        if out.len() > most {
            out.truncate(out.floor_char_boundary(most.saturating_sub('…'.len_utf8())));
            out.push('…');
            break;
        }
    }
    out
}

const AROUND: &[char] = &['(', ')', '[', ']', '{', '}', '<', '>', '"', '\'', '`', ',', ';', '.', ':', '!', '?'];

/// Writes one word; `names_id` says that the words before it announced a request id.
fn clean_word(word: &str, names_id: &mut bool, out: &mut String) {
    let core = word.trim_matches(AROUND);
    let Some(start) = word.find(core).filter(|_| !core.is_empty()) else {
        out.push_str(word);
        return;
    };
    out.push_str(&word[..start]);
    match whole_mask(core) {
        Some(mask) => out.push_str(mask),
        None => clean_pieces(core, names_id, out),
    }
    out.push_str(&word[start + core.len()..]);
}

/// Things seen only in the whole word.
fn whole_mask(core: &str) -> Option<&'static str> {
    let lower = core.to_ascii_lowercase();
    if lower.contains("://") || lower.starts_with("www.") {
        return Some("[link]");
    }
    if core.contains('@') && core.contains('.') {
        return Some("[address]");
    }
    // An IPv6 address, perhaps in brackets with a port after it.
    let bare = core.split(']').next().unwrap_or(core);
    let colons = bare.bytes().filter(|&b| b == b':').count();
    let hex = bare.bytes().all(|b| b.is_ascii_hexdigit() || b == b':');
    if hex && (colons >= 4 || (colons >= 2 && bare.contains("::"))) {
        return Some("[host]");
    }
    const FOLDERS: &[&str] =
        &["/usr/", "/home/", "/app/", "/opt/", "/var/", "/root/", "/srv/", "/etc/", "/tmp/", "/mnt/"];
    FOLDERS.iter().any(|folder| lower.starts_with(folder)).then_some("[path]")
}

/// `name=value`, `host:port` and the like, each part for itself.
fn clean_pieces(core: &str, names_id: &mut bool, out: &mut String) {
    for piece in core.split_inclusive(['=', ':', ',', ';', '|', '(', ')', '"', '\'', '/']) {
        let end = piece.trim_end_matches(['=', ':', ',', ';', '|', '(', ')', '"', '\'', '/']);
        let mask = mask(end, *names_id);
        out.push_str(mask.unwrap_or(end));
        out.push_str(&piece[end.len()..]);
        if end.is_empty() {
            continue;
        }
        let lower = end.to_ascii_lowercase().replace(['_', '-'], "");
        *names_id = match lower.as_str() {
            "request" | "trace" => true,
            "id" | "is" => *names_id,
            other => other.ends_with("requestid") || other.ends_with("traceid") || other.ends_with("logid"),
        };
    }
}

fn mask(piece: &str, after_id: bool) -> Option<&'static str> {
    let lower = piece.to_ascii_lowercase();
    if piece.len() > 8 && (lower.starts_with("sk-") || lower.starts_with("sk_") || lower.starts_with("aiza")) {
        return Some("[key]");
    }
    if is_host(&lower) {
        return Some("[host]");
    }
    let digits = piece.bytes().filter(u8::is_ascii_digit).count();
    let long = piece.len() >= 8 && digits > 0;
    if (after_id && long) || is_id(piece, &lower, digits) { Some("[id]") } else { None }
}

fn is_id(piece: &str, lower: &str, digits: usize) -> bool {
    const MARKS: &[&str] = &["req_", "req-", "chatcmpl-", "org-", "proj_", "cf-ray", "resp_"];
    if MARKS.iter().any(|mark| lower.starts_with(mark) && lower.len() > mark.len() + 3) {
        return true;
    }
    let hex = piece.len() >= 16 && digits >= 2 && piece.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    let noise = piece.len() >= 24 && digits >= 3 && piece.bytes().all(|b| b.is_ascii_alphanumeric());
    hex || noise
}

fn is_host(lower: &str) -> bool {
    if lower == "localhost" {
        return true;
    }
    const ENDS: &[&str] = &[
        "com", "net", "org", "io", "ai", "dev", "app", "cloud", "cn", "co", "us", "eu", "local", "internal", "lan",
        "svc", "xyz", "tech", "info", "run", "site", "intra", "corp",
    ];
    let labels: Vec<&str> = lower.split('.').collect();
    let Some(last) = labels.last().filter(|_| labels.len() > 1) else { return false };
    let plain =
        labels.iter().all(|l| !l.is_empty() && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
    let address = labels.len() == 4 && labels.iter().all(|l| l.parse::<u8>().is_ok());
    plain && (address || ENDS.contains(last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hides_what_must_be_hidden() {
        for (text, clean) in [
            ("See https://platform.example.com/docs?x=1 for more.", "See [link] for more."),
            ("connect to api.internal.example.com:8443 failed", "connect to [host]:8443 failed"),
            ("dial tcp 10.0.3.7:443: refused", "dial tcp [host]:443: refused"),
            ("dial fe80::1:2:3 or [2001:db8::5]:443", "dial [host] or [[host]"),
            ("(request id: 20251115abcdef99)", "(request id: [id])"),
            ("request_id=req_011CQabcdef", "request_id=[id]"),
            ("Request ID is 9f8e7d6c5b4a", "Request ID is [id]"),
            ("id 123e4567-e89b-12d3-a456-426614174000.", "id [id]."),
            ("Incorrect API key provided: sk-proj-abc123456", "Incorrect API key provided: [key]"),
            ("in organization org-Ab12Cd34", "in organization [id]"),
            ("mail help@example.com now", "mail [address] now"),
            ("File /usr/lib/python3/site.py", "File [path]"),
        ] {
            assert_eq!(safe_text(text, 1024), clean);
        }
    }

    #[test]
    fn keeps_what_helps() {
        for text in [
            "Invalid type for 'messages[0].content': expected a string, got 7.",
            "The model `gpt-4.1-2025-04-14` does not support claude-3-5-sonnet-20241022 images.",
            "messages.0.content.1.image.source: invalid base64",
            "max_tokens (300000) exceeds 128000; see /messages/0/content",
            "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
            "request failed validation: temperature must be <= 2.0",
        ] {
            assert_eq!(safe_text(text, 1024), text);
        }
    }

    #[test]
    fn is_short_and_one_line() {
        let long = safe_text(&"wörd\n\t".repeat(100_000), 1024);
        assert!(long.len() <= 1024 && long.ends_with('…') && !long.contains('\n'));
        let unbroken = safe_text(&"x".repeat(100_000), 100);
        assert!(unbroken.len() <= 100);
    }

    proptest! {
        #[test]
        fn any_text_is_safe_to_clean(text in any::<String>(), most in 8usize..64) {
            prop_assert!(safe_text(&text, most).len() <= most);
        }

        #[test]
        fn no_link_survives(before in "[a-z ,(\"]{0,10}", after in "[a-z ,)\"]{0,10}") {
            let text = format!("{before}https://secret.example.com/x{after}");
            prop_assert!(!safe_text(&text, 1024).contains("secret"));
        }
    }
}
