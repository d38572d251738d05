//! Names a place in a body as callers do: `messages[0].content[1].file`. Looked for only when
//! something is refused.

use tollgate_wire::json::{BrokenJson, Scan};

/// Longer names help nobody.
const MOST: usize = 256;

/// The path of the innermost value that begins at or before `at` and ends behind it.
pub(super) fn of(body: &[u8], at: usize) -> String {
    let mut path = String::new();
    // A body that is named was read before; one that cannot be read has no names.
    let _ = walk(&mut Scan::new(body), at, &mut path);
    path.truncate(path.floor_char_boundary(MOST));
    path
}

fn walk(scan: &mut Scan<'_>, at: usize, path: &mut String) -> Result<bool, BrokenJson> {
    match scan.peek() {
        Some(b'{') => {
            let mut found = false;
            scan.object(|key, scan| {
                let length = path.len();
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&key.text());
                visit(scan, at, path, length, &mut found)
            })?;
            Ok(found)
        }
        Some(b'[') => {
            let (mut index, mut found) = (0_usize, false);
            scan.array(|scan| {
                let length = path.len();
                path.push_str(&format!("[{index}]"));
                index += 1;
                visit(scan, at, path, length, &mut found)
            })?;
            Ok(found)
        }
        _ => scan.skip().map(|()| false),
    }
}

fn visit(scan: &mut Scan<'_>, at: usize, path: &mut String, length: usize, found: &mut bool) -> Result<(), BrokenJson> {
    scan.peek();
    let start = scan.at();
    if *found || start > at {
        path.truncate(length);
        return scan.skip();
    }
    // Where the place is exactly this value, its members are not its name.
    if start == at {
        *found = true;
        return scan.skip();
    }
    let inner = walk(scan, at, path)?;
    if inner || scan.at() > at {
        *found = true;
    } else {
        path.truncate(length);
    }
    Ok(())
}
