//! Links in every place and spelling, and what stands there once there are data.

use super::*;
use crate::exchange::Path;
use crate::hub::Target;
use proptest::prelude::*;

const URL: &str = "https://x.example/a.png?x=1&y=\\u0026";

fn request(dialect: Dialect, body: &str) -> CheckedRequest {
    let path = (dialect == Dialect::Gemini).then_some(Path { model: "gemini-m", stream: false });
    CheckedRequest::read(dialect, Bytes::copy_from_slice(body.as_bytes()), path).unwrap()
}

/// Every place of every dialect: the field that is named, and what stands there afterwards.
#[test]
fn links_are_found_where_media_are_and_become_data() {
    let text = r#"{"type":"text","text":"https://x.example/in-a-text.png"}"#;
    for (dialect, body, at, kind, becomes) in [
        (
            Dialect::Chat,
            r#"{"model":"m","messages":[{"role":"user","content":[TEXT,{"type":"image_url","image_url":{"url":"URL","detail":"low"}}]}]}"#,
            "messages[0].content[1].image_url.url",
            LinkKind::Picture,
            r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD","detail":"low"}}"#,
        ),
        (
            Dialect::Chat,
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":"URL"}]}]}"#,
            "messages[0].content[0].image_url",
            LinkKind::Picture,
            r#"{"type":"image_url","image_url":"data:image/png;base64,QUJD"}"#,
        ),
        (
            Dialect::Anthropic,
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"url","url":"URL","new":[1, 2]},"title":"t"}]}]}"#,
            "messages[0].content[0].source.url",
            LinkKind::File,
            r#"{"type":"document","source":{"type":"base64","media_type":"image/png","data":"QUJD","new":[1, 2]},"title":"t"}"#,
        ),
        (
            Dialect::Anthropic,
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[TEXT,{"type":"image","source":{"url":"URL","type":"url"}}]}]}]}"#,
            "messages[0].content[0].content[1].source.url",
            LinkKind::Picture,
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}"#,
        ),
        (
            Dialect::Responses,
            r#"{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"URL"}]}]}"#,
            "input[0].content[0].image_url",
            LinkKind::Picture,
            r#"{"type":"input_image","image_url":"data:image/png;base64,QUJD"}"#,
        ),
        (
            Dialect::Responses,
            r#"{"model":"m","input":[{"type":"function_call_output","call_id":"1","output":[{"type":"input_file","file_url":"URL","file_data":null,"filename":"f"}]}]}"#,
            "input[0].output[0].file_url",
            LinkKind::File,
            r#"{"type":"input_file","filename":"f","file_data":"data:image/png;base64,QUJD"}"#,
        ),
        (
            Dialect::Gemini,
            r#"{"contents":[{"parts":[{"fileData":{"mimeType":"image/gif","displayName":"d","fileUri":"URL","new":{}},"thought":false}]}]}"#,
            "contents[0].parts[0].fileData.fileUri",
            LinkKind::Picture,
            r#"{"thought":false,"inlineData":{"mimeType":"image/png","data":"QUJD","displayName":"d","new":{}}}"#,
        ),
        (
            Dialect::Gemini,
            r#"{"contents":{"parts":[{"functionResponse":{"name":"f","response":{},"parts":[{"file_data":{"file_uri":"URL","display_name":"d"}}]}}]}}"#,
            "contents.parts[0].functionResponse.parts[0].fileData.fileUri",
            LinkKind::File,
            r#"{"inlineData":{"mimeType":"image/png","data":"QUJD","display_name":"d"}}"#,
        ),
    ] {
        let body = body.replace("TEXT", text).replace("URL", URL);
        let request = request(dialect, &body);
        let links = request.links().unwrap();
        let expected = MediaLink { url: "https://x.example/a.png?x=1&y=&".to_owned(), at: at.to_owned(), kind };
        assert_eq!(links, [expected], "{body}");
        let with = request.with_data(|_| Some(LinkContent { mime: "image/png", base64: "QUJD" })).unwrap();
        let new = String::from_utf8(with.body().to_vec()).unwrap();
        assert!(new.contains(becomes), "{new}");
        assert_eq!(with.links().unwrap(), [], "{new}");
        assert_eq!(new.contains("in-a-text.png"), body.contains("in-a-text.png"), "the rest is as it was");
        let same = request.with_data(|_| None).unwrap();
        assert_eq!(same.body(), request.body(), "nothing to put in");
    }
}

/// What stands beside a link is carried where another dialect has a place for it, and reported
/// where it has none.
#[test]
fn members_beside_a_link_do_not_vanish() {
    let source = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"url","url":"http://a/1","new":1}}]}]}"#;
    let named = r#"{"contents":[{"role":"user","parts":[{"fileData":{"mimeType":"MIME","fileUri":"http://a/1","displayName":"my name","new":1}}]}]}"#;
    for (dialect, body, mime, dropped) in [
        (Dialect::Anthropic, source, "application/pdf", "source.new"),
        (Dialect::Gemini, named, "application/pdf", "inlineData.new"),
        (Dialect::Gemini, named, "image/png", "inlineData.displayName,inlineData.new"),
    ] {
        let request = request(dialect, &body.replace("MIME", mime));
        let with = request.with_data(|_| Some(LinkContent { mime, base64: "QUJD" })).unwrap();
        let mut target = Target::new(Dialect::Chat, "up");
        let sent = with.upstream_body(&target).unwrap();
        assert_eq!(sent.dropped.to_string(), dropped, "{body}");
        target.strict = true;
        let problem = with.upstream_body(&target).unwrap_err();
        assert_eq!(problem.param.as_deref(), dropped.split(',').next(), "{body}");
    }
}

/// However a client writes names and addresses, a link is one.
#[test]
fn links_are_found_in_every_spelling() {
    let (chat, anthropic) = (Dialect::Chat, Dialect::Anthropic);
    for (dialect, part) in [
        (chat, r#"{"type":"image_url","image_url":{"url":"HTTPS://x.example/a"}}"#),
        (chat, r#"{"type":"image_url","image_url":"Http://x.example/a"}"#),
        (chat, r#"{"type":"image_url","image_url":{"url":"https:\/\/x.example\/a"}}"#),
        (chat, r#"{"type":"image_url","image_url":{"url":"\u0068ttps://x.example/a"}}"#),
        (chat, r#"{"type":"image_url","image_url":{"url":"h\u0054tp://x.example/a"}}"#),
        (chat, r#"{"type":"image\u005furl","image\u005Furl":{"url":"http://x.example/a"}}"#),
        (anthropic, r#"{"type":"image","source":{"type":"ur\u006c","\u0075rl":"HTTP://x.example/a"}}"#),
    ] {
        let body = format!(r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":[{part}]}}]}}"#);
        let request = request(dialect, &body);
        let [link] = &request.links().unwrap()[..] else { panic!("{body}") };
        assert!(link.url[..4].eq_ignore_ascii_case("http") && link.url.ends_with("://x.example/a"), "{link:?}");
        let with = request.with_data(|_| Some(LinkContent { mime: "image/png", base64: "QUJD" })).unwrap();
        assert!(!with.body().windows(9).any(|at| at == b"x.example"), "{:?}", with.body());
    }
}

/// The bytes are asked first, and must never say no where there is a link.
#[test]
fn a_request_is_read_again_only_where_it_may_have_links() {
    for (body, read) in [
        (r#"{"image_url":"http://x"}"#, true),
        (r#"{"image_url":"hTTp://x"}"#, true),
        (r#"{"image_url":"data:x","text":"see http://x"}"#, false),
        (r#"{"text":"http://x"}"#, false),
        (r#"{"text":"\u4f60\u597d\u0085\u00e9\u000a\u001f"}"#, false),
        (r#"{"text":"\u002f"}"#, true),
        (r#"{"text":"\u007A"}"#, true),
        (r#"{"image_url":"htt"#, false),
        (r#"{"text":"\u00"#, false),
    ] {
        assert_eq!(may_have_links(Dialect::Chat, body.as_bytes()), read, "{body}");
    }
}

#[test]
fn what_only_looks_like_a_link_is_left_alone() {
    for (dialect, body) in [
        (Dialect::Chat, r#"{"model":"m","messages":[{"role":"user","content":"http://x"}]}"#),
        (
            Dialect::Chat,
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}},
                {"type":"image_url","image_url":{"url":"ftp://http.example/a"}},{"type":"video_url","video_url":{"url":"http://x/v"}}]}]}"#,
        ),
        (
            Dialect::Anthropic,
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f",
                "input":{"type":"image","source":{"type":"url","url":"http://x/a"}}}]}]}"#,
        ),
        (Dialect::Responses, r#"{"model":"m","input":"http://x"}"#),
        (
            Dialect::Gemini,
            r#"{"contents":[{"parts":[{"fileData":{"mimeType":"video/mp4","fileUri":"http://x/v"}},{"fileData":{"fileUri":"gs://http/x"}},
                {"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/x"}}]}]}"#,
        ),
    ] {
        assert_eq!(request(dialect, body).links().unwrap(), [], "{body}");
    }
}

/// The second of two is exchanged where the first is not, and the estimate of a picture does not
/// depend on how it is given.
#[test]
fn each_link_by_itself() {
    let one = |url: &str| format!(r#"{{"type":"image_url","image_url":{{"url":"{url}"}}}}"#);
    let body = format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":[{},{}]}}]}}"#,
        one("http://a/1"),
        one("http://a/2")
    );
    let request = request(Dialect::Chat, &body);
    let data = LinkContent { mime: "image/gif", base64: "QQ==" };
    let with = request.with_data(|link| (link.url == "http://a/2").then_some(data)).unwrap();
    assert_eq!(with.body(), &body.replace("http://a/2", "data:image/gif;base64,QQ=="));
    assert_eq!(with.prompt_tokens, request.prompt_tokens);
}

proptest! {
    /// What is looked for only behind the first backslash is found wherever it stands.
    #[test]
    fn an_escaped_letter_is_found_wherever_it_stands(text in r"(\\u00|\\|u|[0-9]){0,12}") {
        let text = text.as_bytes();
        let slowly = text.windows(5).any(|five| five.starts_with(b"\\u00") && (b'2'..=b'7').contains(&five[4]));
        prop_assert_eq!(has_escaped_ascii(text), slowly);
    }
}
