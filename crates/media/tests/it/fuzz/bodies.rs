//! Any bytes at all as a request or a reply about pictures, speech, vectors, order and decisions,
//! or as a form: read or refused, never longer than what came, and the same in whatever pieces it
//! comes.

use super::played;
use bytes::Bytes;
use tollgate_media::decide::{DecisionForm, DecisionReply, DecisionRequest};
use tollgate_media::embed::{EmbedCaller, EmbedReply, EmbedRequest, VectorFlow, VectorShape, VectorTarget};
use tollgate_media::image::{
    EventPass, ImageRequest, Layout, PictureFacts, PictureFlow, PictureTally, ResultStyle, ResultWriter,
};
use tollgate_media::music::MusicRequest;
use tollgate_media::rerank::{RankShape, Ranking, RerankRequest};
use tollgate_media::speech::SpeechRequest;
use tollgate_media::transcription::TranscriptionRequest;
use tollgate_wire::multipart::{FormEvent, FormLimits, FormReader};

/// Inputs of each target in an ordinary test run.
const INPUTS: u64 = 1_500;
/// What may be written for nothing at all: the frame of a result.
const FRAME: usize = 4 << 10;

fn seeds(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==";

static LAYOUTS: [Layout; 3] = [
    Layout { picture: &["data", "*", "b64_json"], prompt: Some(&["data", "*", "revised_prompt"]), draft: None },
    Layout { picture: &["data", "image_base64", "*"], prompt: None, draft: None },
    Layout {
        picture: &["candidates", "*", "content", "parts", "*", "inlineData", "data"],
        prompt: None,
        draft: Some(&["candidates", "*", "content", "parts", "*", "thought"]),
    },
];

fn pictures(layout: &'static Layout, bytes: &[u8], piece: usize) -> Option<(Vec<u8>, u64, u64)> {
    let writer = ResultWriter::new(ResultStyle::Object, 7, PictureFacts::default());
    let mut flow = PictureFlow::new(layout, writer, PictureTally { asked: 2, ..PictureTally::default() });
    for piece in bytes.chunks(piece) {
        flow.feed(piece).ok()?;
    }
    let (_, _, tally, out) = flow.finish().ok()?;
    Some((out, tally.delivered, tally.broken))
}

#[test]
fn any_answer_with_pictures_is_read_or_refused() {
    let texts = [
        format!(
            r#"{{"created":1,"data":[{{"b64_json":"{PNG}","revised_prompt":"a gate"}},{{"b64_json":"{PNG}"}}],"usage":{{"total_tokens":9}}}}"#
        ),
        format!(r#"{{"data":{{"image_base64":["{PNG}","{PNG}"]}},"metadata":{{"success_count":"2"}}}}"#),
        format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"inlineData":{{"data":"{PNG}"}},"thought":true}},{{"text":"x"}}]}}}}]}}"#
        ),
    ];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    played("pictures", INPUTS, &seeds(&texts), |bytes, piece, which| {
        for layout in &LAYOUTS {
            let whole = pictures(layout, bytes, bytes.len().max(1));
            assert_eq!(pictures(layout, bytes, piece), whole, "{which}");
            let Some((out, delivered, _)) = whole else { continue };
            assert!(delivered <= 2 && out.len() <= 4 * bytes.len() + FRAME, "{which}: {} bytes", out.len());
        }
    });
}

#[test]
fn any_events_with_pictures_pass_or_end() {
    let event = |kind: &str| {
        format!(
            "event: {kind}\ndata: {{\"type\":\"{kind}\",\"b64_json\":\"{PNG}\",\"usage\":{{\"total_tokens\":9}}}}\n\n"
        )
    };
    let texts = [
        event("image_generation.partial_image") + &event("image_generation.completed"),
        event("error"),
        format!(
            "id: 7\r\ndata: {{\"data\":[{{\"b64_json\":\"{PNG}\"}},\r\ndata:\"{PNG}\"]}}\r\n\r\ndata: [DONE]\r\n\r\n"
        ),
        "data: {\"data\":[{\"url\":\"https://a.example/1.png\"},{\"url\":\"https://a.example/2.png\"}]}\n\n".repeat(2),
    ];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let pass = |bytes: &[u8], piece: usize| {
        let (mut pass, mut out) = (EventPass::new(2), Vec::new());
        for piece in bytes.chunks(piece) {
            pass.feed(piece).ok()?;
            out.extend_from_slice(&pass.take());
        }
        pass.end().ok()?;
        out.extend_from_slice(&pass.take());
        Some((out, pass.completed()))
    };
    played("events", INPUTS, &seeds(&texts), |bytes, piece, which| {
        let whole = pass(bytes, bytes.len().max(1));
        assert_eq!(pass(bytes, piece), whole, "{which}");
        assert!(whole.is_none_or(|(out, count)| count <= 2 && out.len() <= bytes.len() + FRAME), "{which}");
    });
}

#[test]
fn any_vectors_are_rewritten_or_refused() {
    let texts = [
        r#"{"object":"list","data":[{"index":0,"embedding":[0.1,-2e-3,3]},{"index":1,"embedding":"AACAPwAAAEA="}],"usage":{"prompt_tokens":5}}"#,
        r#"{"embeddings":[{"values":[0.5,1]},{"values":[1e9,2]}],"usageMetadata":{"promptTokenCount":3}}"#,
        r#"{"embeddings":{"float":[[0.5,1],[2,3]]},"meta":{"billed_units":{"input_tokens":4}}}"#,
    ];
    static SHAPES: [VectorShape; 3] = [VectorShape::OPENAI, VectorShape::GEMINI, VectorShape::COHERE];
    let rewritten = |shape: &'static VectorShape, caller: EmbedCaller, bytes: &[u8], piece: usize| {
        let to = VectorTarget { caller, model: "m".to_owned(), texts: 2, counted: 7 };
        let (mut flow, mut out) = (VectorFlow::new(shape, to), Vec::new());
        for piece in bytes.chunks(piece) {
            out.extend_from_slice(&flow.feed(piece).ok()?);
        }
        flow.end_reply(2).ok()?;
        out.extend_from_slice(&flow.end().ok()?);
        Some((out, flow.tokens()))
    };
    played("vectors", INPUTS, &seeds(&texts), |bytes, piece, which| {
        let _ = EmbedReply::read(bytes, false);
        let _ = EmbedReply::read(bytes, true);
        for shape in &SHAPES {
            for caller in [
                EmbedCaller::OpenAi { base64: true },
                EmbedCaller::OpenAi { base64: false },
                EmbedCaller::Gemini { batch: true },
            ] {
                let whole = rewritten(shape, caller, bytes, bytes.len().max(1));
                assert_eq!(rewritten(shape, caller, bytes, piece), whole, "{which}");
                // A number of one digit becomes four bytes in base64, or a dozen letters.
                assert!(whole.is_none_or(|(out, _)| out.len() <= 16 * bytes.len() + FRAME), "{which}");
            }
        }
    });
}

#[test]
fn any_request_is_read_or_refused() {
    let texts = [
        r#"{"model":"m","prompt":"a gate","n":3,"size":"1024x1024","image":["https://x.org/a.png"],"stream":true,"partial_images":2}"#,
        r#"{"model":"m","input":"Hello","voice":{"id":"v"},"response_format":"wav","speed":1.5,"stream_format":"sse"}"#,
        r#"{"model":"m","prompt":"a march","lyrics":"la","duration":30,"audio_setting":{"format":"mp3"}}"#,
        r#"{"model":"m","input":["a","b"],"dimensions":8,"encoding_format":"base64"}"#,
        r#"{"requests":[{"model":"models/m","content":{"parts":[{"text":"a"}]},"outputDimensionality":4}]}"#,
        r#"{"model":"m","query":"q","documents":["a",{"text":"b"}],"top_n":1,"return_documents":true}"#,
        r#"{"model":"m","state":{"a":[1]},"questions":{"x":{"type":"noul","instructions":"?"},"y":{"type":"score","criteria":["a","b"]}}}"#,
        r#"{"model":"m","input":"t","questions":[{"type":"choice","name":"n","instructions":"?","choices":[{"value":true},{"value":"b"}]}]}"#,
    ];
    played("requests", INPUTS, &seeds(&texts), |bytes, _, which| {
        let body = || Bytes::copy_from_slice(bytes);
        for edit in [false, true] {
            if let Ok(request) = ImageRequest::from_json(bytes, edit) {
                assert!(request.images.len() <= 16, "{which}");
            }
        }
        let _ = SpeechRequest::from_json(bytes);
        let _ = MusicRequest::from_json(bytes);
        let _ = EmbedRequest::openai(body());
        let _ = EmbedRequest::gemini(body(), "m", true);
        let _ = EmbedRequest::gemini(body(), "m", false);
        if let Ok(request) = RerankRequest::read(body()) {
            let shape =
                RankShape { results: &["results"], tokens: &[&["usage", "total_tokens"]], units: &[], report: "usage" };
            let _ = Ranking::read(&shape, bytes, &request);
        }
        for form in [DecisionForm::SystemOne, DecisionForm::Decisions] {
            let Ok(request) = DecisionRequest::read(form, body()) else { continue };
            for to in [DecisionForm::SystemOne, DecisionForm::Decisions] {
                let written = request.body(to, "m");
                assert!(
                    written.is_ok_and(|text| text.text.len() <= 8 * bytes.len() + FRAME) || request.fits(to).is_err(),
                    "{which}"
                );
                let _ = DecisionReply::read(to, body(), &request, "m", 1);
            }
        }
    });
}

/// The fields of a form, or that it is none.
fn form(bytes: &[u8], piece: usize) -> Option<Vec<(String, Vec<u8>)>> {
    let limits = FormLimits::default();
    let mut reader = FormReader::new("multipart/form-data; boundary=a-b", limits).ok()?;
    let mut parts: Vec<(String, Vec<u8>)> = Vec::new();
    for piece in bytes.chunks(piece) {
        reader.push(Bytes::copy_from_slice(piece));
        while let Some(event) = reader.event().ok()? {
            match event {
                FormEvent::Begin(head) => parts.push((head.name.clone(), Vec::new())),
                FormEvent::Piece(data) => parts.last_mut()?.1.extend_from_slice(&data),
                FormEvent::End => {}
            }
        }
    }
    reader.finish().ok()?;
    Some(parts)
}

#[test]
fn any_form_is_taken_apart_or_refused() {
    let part =
        |name: &str, text: &str| format!("--a-b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n");
    let file = "--a-b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\nRIFF\r\n--a-\r\n";
    let text = part("model", "whisper") + file + &part("timestamp_granularities[]", "word") + "--a-b--\r\n";
    let other = part("response_format", "srt")
        + &part("temperature", "0.2")
        + &part("chunking_strategy[type]", "auto")
        + "--a-b--\r\n";
    played("forms", 2 * INPUTS, &seeds(&[&text, &other]), |bytes, piece, which| {
        let whole = form(bytes, bytes.len().max(1));
        assert_eq!(form(bytes, piece), whole, "{which}");
        let Some(parts) = whole else { return };
        assert!(parts.iter().map(|(name, data)| name.len() + data.len()).sum::<usize>() <= bytes.len(), "{which}");
        let texts: Vec<(String, String)> =
            parts.into_iter().map(|(name, data)| (name, String::from_utf8_lossy(&data).into_owned())).collect();
        for translate in [false, true] {
            let fields = texts.iter().map(|(name, text)| (name.as_str(), text.as_str()));
            let _ = TranscriptionRequest::read(fields, translate);
        }
    });
}
