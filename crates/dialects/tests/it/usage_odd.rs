//! Reports of usage that are none: of another shape, or with numbers that nobody could have used.

use crate::usage::{SHAPES, read};
use tollgate_wire::usage::UsageShape;

#[test]
fn odd_shapes_are_missing() {
    for shape in SHAPES {
        let (input, output, details) = match shape {
            UsageShape::Chat => ("prompt_tokens", "completion_tokens", "prompt_tokens_details"),
            UsageShape::Anthropic => ("input_tokens", "output_tokens", "cache_creation"),
            UsageShape::Responses => ("input_tokens", "output_tokens", "input_tokens_details"),
            UsageShape::Gemini => ("promptTokenCount", "candidatesTokenCount", "promptTokensDetails"),
        };
        for text in ["null", "[]", "7", "{}", "{", "", "true", "\"5\""] {
            assert_eq!(read(shape, text), None, "{shape:?} {text}");
        }
        for odd in ["\"10\"", "10.5", "1e3", "-10", "99999999999999999999999999", "1000000001", "true", "[]", "{}"] {
            assert_eq!(read(shape, &format!(r#"{{"{input}":{odd},"{output}":5}}"#)), None, "{shape:?} {odd}");
            assert_eq!(read(shape, &format!(r#"{{"{input}":5,"{output}":{odd}}}"#)), None, "{shape:?} {odd}");
        }
        assert_eq!(read(shape, &format!(r#"{{"{input}":0,"{output}":0}}"#)), None);
        assert_eq!(read(shape, &format!(r#"{{"{input}":1,"{output}":5,"{details}":7}}"#)), None);
        assert!(read(shape, &format!(r#"{{"{input}":1,"{output}":5,"{details}":null}}"#)).is_some());
        assert!(read(shape, &format!(r#"{{"{input}":1,"{output}":5,"other":{{"x":[1.5,-3]}}}}"#)).is_some());
    }
    for text in [
        r#"{"prompt_tokens":10}"#,
        r#"{"total_tokens":10}"#,
        r#"{"prompt_tokens":20,"total_tokens":15}"#,
        r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":-1}}"#,
        r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":[]}"#,
    ] {
        assert_eq!(read(UsageShape::Chat, text), None, "{text}");
    }
    for text in [r#"{"output_tokens":5}"#, r#"{"input_tokens":5,"output_tokens":5,"iterations":[3]}"#] {
        assert_eq!(read(UsageShape::Anthropic, text), None, "{text}");
    }
    for text in [
        r#"{"candidatesTokenCount":5}"#,
        r#"{"candidatesTokenCount":5,"totalTokenCount":4}"#,
        r#"{"promptTokenCount":5,"promptTokensDetails":[{"modality":"AUDIO","tokenCount":1.5}]}"#,
        r#"{"promptTokenCount":5,"promptTokensDetails":["AUDIO"]}"#,
    ] {
        assert_eq!(read(UsageShape::Gemini, text), None, "{text}");
    }
}
