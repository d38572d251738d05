//! The `Date` of replies, written once a second and thread.

use std::cell::RefCell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// For how long a text is right, and the text.
struct Written {
    second: u64,
    text: String,
}

thread_local! {
    static LAST: RefCell<Written> = const { RefCell::new(Written { second: 0, text: String::new() }) };
}

/// Lends the present time as HTTP writes it.
pub(super) fn with_now<T>(lend: impl FnOnce(&[u8]) -> T) -> T {
    #[expect(clippy::disallowed_methods, reason = "a header for the other side; nothing is decided by it")]
    let second = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    LAST.with_borrow_mut(|last| {
        if last.second != second || last.text.is_empty() {
            let text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(second));
            *last = Written { second, text };
        }
        lend(last.text.as_bytes())
    })
}
