//! Answers to questions, checked and, where the client speaks the other format, written in it.

use super::answers::{Answers, write_decisions, write_system_one};
use super::question::DecisionQuestion;
use super::request::{DecisionForm, DecisionRequest};
use bytes::Bytes;
use tollgate_wire::json::{self, Node, Object};

/// The reply does not answer the questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotDecided;

/// What a reply says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionReply {
    /// For the client, in its format and with the public name of the model.
    pub body: Bytes,
    /// As reported.
    pub input: Option<u64>,
    pub output: u64,
    pub raw_usage: Option<String>,
}

/// Longest report stored.
const MOST_RAW_USAGE: usize = 8 << 10;

impl DecisionReply {
    /// Reads the reply of a provider of this format. `public` is the model's name, `counted` what
    /// is given where the provider reports nothing.
    pub fn read(
        from: DecisionForm,
        body: Bytes,
        request: &DecisionRequest,
        public: &str,
        counted: u64,
    ) -> Result<DecisionReply, NotDecided> {
        let text = json::lossy(&body);
        let root = Node::read(&text).map_err(|_| NotDecided)?;
        let tree = request.tree().map_err(|_| NotDecided)?;
        let questions = DecisionQuestion::all(request.form, &tree).map_err(|_| NotDecided)?;
        let answers = Answers::read(from, &root, &questions)?;
        let usage = root.get("usage");
        let number = |name: &str| usage.and_then(|usage| usage.get(name)).and_then(Node::number);
        let most = tollgate_wire::usage::MOST;
        let input = number("input_tokens").filter(|tokens| (1..=most).contains(tokens));
        let output = number("output_tokens").filter(|tokens| *tokens <= most).unwrap_or(0);
        let raw_usage = usage.map(|usage| usage.raw.to_owned()).filter(|raw| raw.len() <= MOST_RAW_USAGE);
        let named = root.get("model").filter(|_| from == request.form && input.is_some());
        let written = match named {
            // Every byte but the model's name is the provider's.
            Some(model) => json::splice(text.as_bytes(), &[(model.place_in(&text), &json::quoted(public))]),
            None => {
                let facts = AnswerFacts { model: public, input: input.unwrap_or(counted), output };
                facts.written(request.form, &questions, &answers)
            }
        };
        Ok(DecisionReply { body: Bytes::from(written), input, output, raw_usage })
    }
}

/// What stands around the answers.
struct AnswerFacts<'a> {
    model: &'a str,
    input: u64,
    output: u64,
}

impl AnswerFacts<'_> {
    fn written(&self, form: DecisionForm, questions: &[DecisionQuestion<'_>], answers: &Answers<'_>) -> Vec<u8> {
        let mut out = Vec::with_capacity(1_024);
        let mut object = Object::begin(&mut out);
        object.text("model", self.model);
        match form {
            DecisionForm::SystemOne => {
                write_system_one(&mut object, questions, answers);
                object.object("usage", |usage| {
                    usage.number("input_tokens", self.input);
                    usage.number("output_tokens", self.output);
                });
            }
            DecisionForm::Decisions => {
                write_decisions(&mut object, questions, answers);
                object.object("usage", |usage| {
                    usage.number("input_tokens", self.input);
                    usage.object("input_tokens_details", |details| {
                        details.number("cached_tokens", 0);
                        details.number("cache_write_tokens", 0);
                    });
                    usage.number("output_tokens", self.output);
                    usage.object("output_tokens_details", |details| details.number("reasoning_tokens", 0));
                    usage.number("total_tokens", self.input.saturating_add(self.output));
                });
            }
        }
        object.end();
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM_ONE: &str = r#"{"model":"m","state":{"a":1},"questions":{"yes":{"type":"noul","criteria":{"true":"it is so"}},"tone":{"type":"choice","instructions":"Which?","criteria":{"calm":null,"angry":"loud"}},"how":{"type":"score","criteria":["bad",{"x":1}]}}}"#;
    const DECISIONS: &str = r#"{"model":"m","input":"text","questions":[{"type":"predicate","name":"yes","instructions":"Is it?"},{"type":"choice","instructions":"Which?","choices":[{"value":true},{"value":"no","description":"d"}]},{"type":"score","name":"how","instructions":"How?","levels":[{"label":"bad"},{"label":"good","description":"fine"}]}]}"#;

    fn read(form: DecisionForm, body: &str) -> DecisionRequest {
        DecisionRequest::read(form, Bytes::from(body.to_owned())).unwrap()
    }

    fn sent(request: &DecisionRequest, to: DecisionForm) -> String {
        String::from_utf8(request.body(to, "up").unwrap().text.to_vec()).unwrap()
    }

    #[test]
    fn questions_are_asked_in_the_other_format() {
        let request = read(DecisionForm::SystemOne, SYSTEM_ONE);
        assert_eq!(sent(&request, DecisionForm::SystemOne), SYSTEM_ONE.replace("\"m\"", "\"up\""));
        let expected = r#"{"model":"up","input":"{\"a\":1}","questions":[{"type":"predicate","name":"yes","instructions":"True: it is so"},{"type":"choice","choices":[{"value":"calm"},{"value":"angry","description":"loud"}],"name":"tone","instructions":"Which?"},{"type":"score","levels":[{"label":"bad"},{"label":"{\"x\":1}"}],"name":"how","instructions":"how"}]}"#;
        assert_eq!(sent(&request, DecisionForm::Decisions), expected);
        let request = read(DecisionForm::Decisions, DECISIONS);
        let expected = r#"{"model":"up","state":"text","questions":{"yes":{"type":"noul","instructions":"Is it?"},"question_1":{"type":"choice","criteria":{"true":null,"no":"d"},"instructions":"Which?"},"how":{"type":"score","criteria":["bad","good: fine"],"instructions":"How?"}}}"#;
        assert_eq!(sent(&request, DecisionForm::SystemOne), expected);
    }

    #[test]
    fn answers_come_back_in_the_clients_format() {
        let request = read(DecisionForm::SystemOne, SYSTEM_ONE);
        let reply = r#"{"model":"u","answers":[{"type":"predicate","name":"yes","probability":0.25},{"type":"choice","name":"tone","choice":"calm","confidence":0.9,"probabilities":[{"value":"calm","probability":0.9},{"value":"angry","probability":0.1}]},{"type":"refusal","name":"how"}],"usage":{"input_tokens":9,"output_tokens":3,"total_tokens":12}}"#;
        let read_as = |from, body: &str, request: &DecisionRequest| {
            DecisionReply::read(from, Bytes::from(body.to_owned()), request, "m", 77)
        };
        let reply_read = read_as(DecisionForm::Decisions, reply, &request).unwrap();
        let expected = r#"{"model":"m","answers":{"yes":{"type":"noul","noul":0.25},"tone":{"type":"choice","choice":"calm","confidence":0.9,"probabilities":{"calm":0.9,"angry":0.1}}},"usage":{"input_tokens":9,"output_tokens":3}}"#;
        assert_eq!((reply_read.body, reply_read.input, reply_read.output), (Bytes::from(expected), Some(9), 3));
        let request = read(DecisionForm::Decisions, DECISIONS);
        let reply = r#"{"model":"u","answers":{"yes":{"type":"noul","noul":1},"question_1":{"type":"choice","choice":"true","confidence":0.8,"probabilities":{"true":0.8,"no":0.2}},"how":{"type":"score","score":0.5,"confidence":0.4,"legend":{"0":"bad","1":"good: fine"},"probabilities":{"0":0.5,"1":0.5}}},"usage":{}}"#;
        let reply_read = read_as(DecisionForm::SystemOne, reply, &request).unwrap();
        let expected = r#"{"model":"m","answers":[{"type":"predicate","name":"yes","probability":1},{"type":"choice","name":null,"choice":true,"confidence":0.8,"probabilities":[{"value":true,"probability":0.8},{"value":"no","probability":0.2}]},{"type":"score","name":"how","score":0.5,"confidence":0.4,"probabilities":[{"label":"bad","value":0,"probability":0.5},{"label":"good","value":1,"probability":0.5}]}],"usage":{"input_tokens":77,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":0,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":77}}"#;
        assert_eq!((reply_read.body, reply_read.input), (Bytes::from(expected), None));
    }

    #[test]
    fn what_answers_other_questions_is_no_decision() {
        let request = read(DecisionForm::SystemOne, SYSTEM_ONE);
        for body in [
            "{}",
            "<html>",
            r#"{"answers":[]}"#,
            r#"{"answers":{}}"#,
            r#"{"answers":{"other":{"type":"noul","noul":1}}}"#,
            r#"{"answers":{"yes":{"type":"noul"}}}"#,
            r#"{"answers":{"yes":{"type":"choice","choice":"a"}}}"#,
        ] {
            let read = DecisionReply::read(DecisionForm::SystemOne, Bytes::from(body), &request, "m", 1);
            assert_eq!(read, Err(NotDecided), "{body}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_and_so_is_the_other_endpoint() {
        let refused = |form, body: &str| DecisionRequest::read(form, Bytes::from(body.to_owned())).unwrap_err();
        let other = refused(DecisionForm::SystemOne, DECISIONS);
        assert!(other.message.contains("POST /v1/decisions") && other.param.as_deref() == Some("input"), "{other:?}");
        let other = refused(DecisionForm::Decisions, SYSTEM_ONE);
        assert!(other.message.contains("POST /v1/systemone") && other.param.as_deref() == Some("state"), "{other:?}");
        let system_one = |rest: &str| format!(r#"{{"model":"m","state":"s",{rest}}}"#);
        for (body, param) in [
            (r#"{"model":"m","questions":{"a":{"type":"noul","instructions":"?"}}}"#.to_owned(), "state"),
            (system_one(r#""questions":{}"#), "questions"),
            (system_one(r#""questions":[{"type":"predicate"}]"#), "questions"),
            (system_one(r#""questions":{"a":{"type":"noul"}}"#), "questions.a.instructions"),
            (system_one(r#""questions":{"a":{"type":"guess"}}"#), "questions.a.type"),
            (system_one(r#""questions":{"a":{"type":"choice","criteria":{}}}"#), "questions.a.criteria"),
        ] {
            assert_eq!(refused(DecisionForm::SystemOne, &body).param.as_deref(), Some(param), "{body}");
        }
        let link = r#"{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"http://10.0.0.1/a"}]}],"questions":[{"type":"predicate","instructions":"?"}]}"#;
        assert_eq!(refused(DecisionForm::Decisions, link).param.as_deref(), Some("input[0].content[0].image_url"));
    }
}
