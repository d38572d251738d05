//! Forms in one piece, byte by byte, and forms that must be refused.

use proptest::prelude::*;
use bytes::Bytes;
use tollgate_wire::multipart::{Bad, FormEvent, FormLimits, FormPart, FormReader, PartHead, whole_form};

const TYPE: &str = "multipart/form-data; boundary=XX";

fn read(body: &[u8], piece: usize) -> Result<Vec<FormPart>, Bad> {
    limited(TYPE, body, piece, FormLimits::default())
}

/// The parts of a form that comes in pieces of this size.
fn limited(content_type: &str, body: &[u8], piece: usize, limits: FormLimits) -> Result<Vec<FormPart>, Bad> {
    let mut reader = FormReader::new(content_type, limits)?;
    let mut parts: Vec<(PartHead, Vec<u8>, bool)> = Vec::new();
    for chunk in body.chunks(piece.max(1)) {
        reader.push(Bytes::copy_from_slice(chunk));
        while let Some(event) = reader.event()? {
            let last = parts.last_mut();
            match (event, last) {
                (FormEvent::Begin(head), last) => {
                    assert!(last.is_none_or(|last| last.2), "the part before has ended");
                    parts.push((head, Vec::new(), false));
                }
                (FormEvent::Piece(piece), Some(last)) => {
                    assert!(!piece.is_empty() && !last.2);
                    last.1.extend_from_slice(&piece);
                }
                (FormEvent::End, Some(last)) => last.2 = true,
                (other, None) => panic!("{other:?} before any part"),
            }
        }
    }
    reader.finish()?;
    let part = |(head, body, ended): (PartHead, Vec<u8>, bool)| {
        assert!(ended);
        let PartHead { name, file_name, content_type } = head;
        FormPart { name, file_name, content_type, body: body.into() }
    };
    Ok(parts.into_iter().map(part).collect())
}

fn form(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (headers, body) in parts {
        out.extend_from_slice(format!("--XX\r\n{headers}\r\n\r\n").as_bytes());
        out.extend_from_slice(body);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"--XX--\r\n");
    out
}

#[test]
fn fields_and_files() {
    let body = form(&[
        ("Content-Disposition: form-data; name=\"model\"", b"m"),
        ("content-disposition: form-data; name=metadata[ratio]", b"16:9"),
        (
            "Content-Type: image/png\r\nContent-Disposition: form-data; name=\"input_reference\"; filename=\"a \\\"b\\\"; c.png\"",
            b"\x89PNG\r\n--X\r\n\0",
        ),
        ("Content-Disposition: form-data; name=\"empty\"", b""),
    ]);
    for piece in [1, 2, 3, 7, 64, body.len()] {
        let parts = read(&body, piece).expect("a form");
        let names: Vec<_> = parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["model", "metadata[ratio]", "input_reference", "empty"]);
        assert_eq!(parts[2].file_name.as_deref(), Some("a \"b\"; c.png"));
        assert_eq!(parts[2].content_type.as_deref(), Some("image/png"));
        assert_eq!(&parts[2].body[..], b"\x89PNG\r\n--X\r\n\0");
        assert!(parts[3].body.is_empty() && parts[3].file_name.is_none());
    }
}

#[test]
fn what_stands_around_the_parts_is_skipped() {
    let mut body = b"a preamble\r\n".to_vec();
    body.extend(form(&[("Content-Disposition: form-data; name=\"a\"", b"1")]));
    body.extend(b"an epilogue --XX");
    assert_eq!(read(&body, 5).expect("a form")[0].body, "1");
    let blanks = b"--XX \t\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--XX--";
    assert_eq!(read(blanks, 1).expect("a form")[0].body, "1");
    assert_eq!(read(b"--XX--", 1), Ok(vec![]));
}

#[test]
fn refused() {
    let nameless = form(&[("Content-Disposition: form-data", b"1")]);
    let headless = form(&[("Content-Type: text/plain", b"1")]);
    let attachment = form(&[("Content-Disposition: attachment; name=\"a\"", b"1")]);
    let twice = "Content-Disposition: form-data; name=\"a\"\r\nContent-Disposition: form-data; name=\"b\"";
    let twice = form(&[(twice, b"1")]);
    for (body, bad) in [
        (&nameless[..], Bad::Syntax),
        (&headless, Bad::Syntax),
        (&attachment, Bad::Syntax),
        (&twice, Bad::Syntax),
        (b"--XXjunk", Bad::Syntax),
        (b"", Bad::Unfinished),
        (b"--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nnever ends", Bad::Unfinished),
        (b"no boundary at all", Bad::Unfinished),
    ] {
        assert_eq!(read(body, 4), Err(bad), "{}", String::from_utf8_lossy(body));
    }
    for content_type in
        ["multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=\"a\nb\""]
    {
        assert_eq!(FormReader::new(content_type, FormLimits::default()).err(), Some(Bad::NoBoundary), "{content_type}");
    }
}

#[test]
fn limits() {
    let small = FormLimits { parts: 2, field_bytes: 4, file_bytes: 8 };
    let field = "Content-Disposition: form-data; name=\"a\"";
    let file = "Content-Disposition: form-data; name=\"a\"; filename=\"f\"";
    for (parts, outcome) in [
        (vec![(field, &b"1234"[..])], Ok(1)),
        (vec![(field, &b"12345"[..])], Err(Bad::TooLong)),
        (vec![(file, &b"12345678"[..])], Ok(1)),
        (vec![(file, &b"123456789"[..])], Err(Bad::TooLong)),
        (vec![(field, &b""[..]); 2], Ok(2)),
        (vec![(field, &b""[..]); 3], Err(Bad::TooManyParts)),
    ] {
        for piece in [1, 1000] {
            assert_eq!(limited(TYPE, &form(&parts), piece, small).map(|parts| parts.len()), outcome);
        }
    }
    // A body that never ends is refused while it comes, not at its end.
    let pushed = |reader: &mut FormReader, bytes: &[u8]| {
        reader.push(Bytes::copy_from_slice(bytes));
        loop {
            match reader.event() {
                Ok(Some(_)) => {}
                Ok(None) => break Ok(()),
                Err(bad) => break Err(bad),
            }
        }
    };
    let mut reader = FormReader::new(TYPE, small).expect("a reader");
    pushed(&mut reader, format!("--XX\r\n{file}\r\n\r\n").as_bytes()).expect("headers");
    assert!((0..10).any(|_| pushed(&mut reader, b"12345678") == Err(Bad::TooLong)));
    assert_eq!(reader.open().map(|part| part.name.as_str()), Some("a"), "and by its name");
    let mut reader = FormReader::new(TYPE, small).expect("a reader");
    pushed(&mut reader, b"--XX\r\n").expect("a boundary");
    assert!((0..20).any(|_| pushed(&mut reader, &[b'x'; 1000]) == Err(Bad::TooLong)));
}

#[test]
fn pieces_of_a_file_come_out_as_they_arrive_and_share_its_bytes() {
    let mut reader = FormReader::new(TYPE, FormLimits::default()).expect("a reader");
    let head = "--XX\r\nContent-Disposition: form-data; name=\"f\"; filename*=UTF-8''a.bin\r\n\r\n";
    reader.push(Bytes::from_static(head.as_bytes()));
    let Ok(Some(FormEvent::Begin(begun))) = reader.event() else { panic!("the head of the part") };
    assert_eq!(begun.file_name.as_deref(), Some("UTF-8''a.bin"), "a part with any file name is a file");
    assert_eq!(reader.event(), Ok(None));
    let sent = Bytes::from(vec![7; 1 << 16]);
    reader.push(sent.clone());
    // The line end before the body was held with it, so this one is joined.
    assert_eq!(reader.event(), Ok(Some(FormEvent::Piece(sent.clone()))));
    reader.push(sent.clone());
    let Ok(Some(FormEvent::Piece(piece))) = reader.event() else { panic!("a piece") };
    assert_eq!((piece.as_ptr(), piece.len()), (sent.as_ptr(), sent.len()), "not copied");
    // What may be the beginning of a boundary waits for what follows.
    reader.push(Bytes::from_static(b"abc\r\n--X"));
    assert_eq!(reader.event(), Ok(Some(FormEvent::Piece(Bytes::from_static(b"abc")))));
    assert_eq!(reader.event(), Ok(None));
    reader.push(Bytes::from_static(b"Y\r\n--XX--"));
    assert_eq!(reader.event(), Ok(Some(FormEvent::Piece(Bytes::from_static(b"\r\n--XY")))));
    assert_eq!(reader.event(), Ok(Some(FormEvent::End)));
    assert_eq!((reader.event(), reader.finish()), (Ok(None), Ok(())));
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces(body in proptest::collection::vec(any::<u8>(), 0..400), piece in 1usize..40) {
        let whole = read(&body, body.len());
        prop_assert_eq!(&read(&body, piece), &whole);
        let at_once = whole_form(TYPE, FormLimits::default(), Bytes::from(body)).map_err(|(bad, _)| bad);
        prop_assert_eq!(at_once, whole);
    }

    #[test]
    fn what_goes_in_comes_out(
        bodies in proptest::collection::vec(proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'-'), Just(b'X'), any::<u8>()], 0..60), 0..5),
        piece in 1usize..40,
    ) {
        let holds_mark = |body: &Vec<u8>| {
            let framed = [b"\r\n", &body[..], b"\r\n--XX"].concat();
            framed.windows(6).filter(|window| window == b"\r\n--XX").count() != 1
        };
        prop_assume!(!bodies.iter().any(holds_mark));
        let parts: Vec<_> = bodies.iter().map(|body| ("Content-Disposition: form-data; name=\"a\"", &body[..])).collect();
        let read: Vec<_> = read(&form(&parts), piece).expect("a form").into_iter().map(|part| part.body.to_vec()).collect();
        prop_assert_eq!(read, bodies);
    }
}
