//! A request for decisions in either format, checked.

use super::assets::{DecisionBody, UnfoldedRequest, gap};
use super::question::DecisionQuestion;
use crate::TextTally;
use crate::body::{each_member, model, passed_on};
use bytes::Bytes;
use std::borrow::Cow;
use std::ops::Range;
use tollgate_wire::Problem;
use tollgate_wire::error::Code;
use tollgate_wire::json::{self, Node, NodeKind, Object};

/// Questions in one request.
pub const MOST_QUESTIONS: usize = 400;
/// Bytes of all questions together, as JSON. Answers say their words again, with a number for each:
/// they are never longer than 1 MiB so.
const MOST_ASKED: usize = 128 << 10;
/// Tokens that a model adds to what it is asked, in all and for each question; and the most of that
/// which is believed.
const AROUND: u64 = 512;
const AROUND_EACH: u64 = 16;
const MOST_AROUND: u64 = 4_096;

/// The two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionForm {
    SystemOne,
    Decisions,
}

impl DecisionForm {
    /// Where each is asked.
    pub const fn path(self) -> &'static str {
        match self {
            DecisionForm::SystemOne => "/v1/systemone",
            DecisionForm::Decisions => "/v1/decisions",
        }
    }

    /// The field with what is read.
    pub const fn read_in(self) -> &'static str {
        match self {
            DecisionForm::SystemOne => "state",
            DecisionForm::Decisions => "input",
        }
    }

    const fn other(self) -> DecisionForm {
        match self {
            DecisionForm::SystemOne => DecisionForm::Decisions,
            DecisionForm::Decisions => DecisionForm::SystemOne,
        }
    }
}

/// A checked request.
#[derive(Clone, Debug)]
pub struct DecisionRequest {
    pub form: DecisionForm,
    pub model: String,
    pub tally: TextTally,
    pub questions: usize,
    pub pictures: u64,
    body: Bytes,
    model_place: Range<usize>,
    /// Where the body has gaps for files, and which of them each is for.
    gaps: Vec<(usize, usize)>,
    /// Which member of `assets` each gap belongs to.
    members: Vec<usize>,
}

impl DecisionRequest {
    pub fn read(form: DecisionForm, body: Bytes) -> Result<DecisionRequest, Problem> {
        let mut named = None;
        each_member(&body, |key, scan| {
            match key {
                b"model" => named = Some(model(scan)?),
                _ => passed_on(key, scan, form.read_in())?,
            }
            Ok(())
        })?;
        let text = std::str::from_utf8(&body).map_err(|_| Problem::not_json("The body is not valid UTF-8."))?;
        let root = Node::read(text)?;
        if root.get(form.other().read_in()).is_some() {
            return Err(other_form(form, form.other().read_in()));
        }
        let (model, model_place) = named.ok_or_else(|| Problem::missing("model"))?;
        let mut read = DecisionRequest {
            form,
            model,
            tally: TextTally::default(),
            questions: 0,
            pictures: 0,
            body: body.clone(),
            model_place,
            gaps: Vec::new(),
            members: Vec::new(),
        };
        read.check(&root)?;
        Ok(read)
    }

    /// A request whose pictures came as parts of a form.
    pub fn of_form(UnfoldedRequest { body, members }: UnfoldedRequest) -> Result<DecisionRequest, Problem> {
        let read = DecisionRequest::read(DecisionForm::SystemOne, body.text)?;
        Ok(DecisionRequest { gaps: body.gaps, members, ..read })
    }

    fn check(&mut self, root: &Node<'_>) -> Result<(), Problem> {
        let name = self.form.read_in();
        let said = root.get(name).ok_or_else(|| Problem::missing(name))?;
        let fits = match self.form {
            DecisionForm::SystemOne => said.text().is_some() || said.is_list() || said.is_map(),
            DecisionForm::Decisions => said.text().is_some() || said.is_list(),
        };
        if !fits || said.is_zero() {
            return Err(Problem::wrong(name, "a string or a list that is not empty"));
        }
        self.count(said, name)?;
        let questions = root.get("questions").ok_or_else(|| Problem::missing("questions"))?;
        let (right, wrong) = match self.form {
            DecisionForm::SystemOne => (questions.is_map(), questions.is_list()),
            DecisionForm::Decisions => (questions.is_list(), questions.is_map()),
        };
        if wrong {
            return Err(other_form(self.form, "questions"));
        }
        self.questions = questions.members().len() + questions.items().len();
        if !right || !(1..=MOST_QUESTIONS).contains(&self.questions) {
            return Err(Problem::wrong("questions", &format!("1 to {MOST_QUESTIONS} questions")));
        }
        // Each can be understood, or is refused before anything is held.
        DecisionQuestion::all(self.form, root)?;
        if questions.raw.len() > MOST_ASKED {
            return Err(Problem::wrong("questions", "at most 128 KiB of JSON"));
        }
        self.count(questions, "questions")?;
        self.pictures += root.get("assets").map_or(0, |assets| assets.members().len() as u64);
        Ok(())
    }

    /// Counts all text below a value. Pictures are counted as such: they are given as data, because
    /// whoever fetches a link for a caller may stand where the caller cannot go.
    fn count(&mut self, node: &Node<'_>, place: &str) -> Result<(), Problem> {
        match &node.kind {
            NodeKind::Text(text) if text.starts_with("data:image/") => self.pictures += 1,
            NodeKind::Text(_) => self.tally.text(&node.raw.as_bytes()[1..node.raw.len() - 1]),
            NodeKind::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.count(item, &format!("{place}[{at}]"))?;
                }
            }
            NodeKind::Map(members) => {
                for (name, value) in members {
                    let here = format!("{place}.{name}");
                    let link = name == "image_url" && value.text().is_some_and(|text| !text.starts_with("data:image/"));
                    if link {
                        return Err(Problem::wrong(&here, "a picture as a data link (`data:image/png;base64,…`)"));
                    }
                    self.tally.text(name.as_bytes());
                    self.count(value, &here)?;
                }
            }
            _ => self.tally.text(node.raw.as_bytes()),
        }
        Ok(())
    }

    /// Our own count, where each picture has at most so many tokens.
    pub fn counted(&self, picture: u64) -> u64 {
        self.tally.tokens.saturating_add(self.pictures.saturating_mul(picture))
    }

    /// The most tokens that a provider counts.
    pub fn most(&self, picture: u64) -> u64 {
        let around = AROUND.saturating_add((self.questions as u64).saturating_mul(AROUND_EACH));
        self.tally.most().saturating_add(around).saturating_add(self.pictures.saturating_mul(picture))
    }

    /// A report above this cannot be true.
    pub fn believable(&self, picture: u64) -> u64 {
        let pictures = self.pictures.saturating_mul(picture).saturating_mul(4);
        self.tally.believable().saturating_add(MOST_AROUND).saturating_add(pictures).max(self.most(picture))
    }

    /// A scalar of the request by dotted path.
    pub fn attr(&self, path: &str) -> Option<Cow<'_, str>> {
        json::attr(&self.body, path)
    }

    pub(super) fn tree(&self) -> Result<Node<'_>, Problem> {
        Ok(Node::read(std::str::from_utf8(&self.body).unwrap_or_default())?)
    }

    /// The body for a provider of this format.
    pub fn body(&self, to: DecisionForm, model: &str) -> Result<DecisionBody, Problem> {
        if to == self.form {
            let (name, place) = (json::quoted(model), &self.model_place);
            let moved = |(at, part): &(usize, usize)| match *at > place.start {
                true => (at - place.len() + name.len(), *part),
                false => (*at, *part),
            };
            let gaps = self.gaps.iter().map(moved).collect();
            return Ok(DecisionBody { text: Bytes::from(json::splice(&self.body, &[(place.clone(), &name)])), gaps });
        }
        let root = self.tree()?;
        let questions = DecisionQuestion::all(self.form, &root)?;
        let (mut out, mut gaps) = (Vec::with_capacity(self.body.len() + 256), Vec::new());
        let mut object = Object::begin(&mut out);
        object.text("model", model);
        match to {
            DecisionForm::Decisions => {
                self.write_input(&root, &mut object, &mut gaps);
                object
                    .array("questions", |list| questions.iter().for_each(|one| list.object(|out| one.decisions(out))));
            }
            DecisionForm::SystemOne => {
                if self.pictures > 0 {
                    let text = "`input`: the provider of this model takes no pictures in this format.";
                    return Err(Problem::unsupported("input", text));
                }
                if let Some(input) = root.get("input") {
                    object.raw("state", input.raw);
                }
                object.object("questions", |map| {
                    for one in &questions {
                        map.object(&one.key, |out| one.system_one(out));
                    }
                });
            }
        }
        object.end();
        Ok(DecisionBody { text: Bytes::from(out), gaps })
    }

    /// `state` as `input`: a text is one, anything else is written as text, and pictures follow it.
    fn write_input(&self, root: &Node<'_>, object: &mut Object<'_>, gaps: &mut Vec<(usize, usize)>) {
        let state = root.get("state");
        let text = state.map_or(Cow::Borrowed(""), |state| match state.text() {
            Some(text) => text.clone(),
            None => Cow::Borrowed(state.raw),
        });
        let assets = root.get("assets").map_or(&[][..], Node::members);
        if assets.is_empty() {
            return object.text("input", &text);
        }
        object.array("input", |items| {
            items.object(|message| {
                message.text("type", "message");
                message.text("role", "user");
                message.array("content", |parts| {
                    parts.object(|part| {
                        part.text("type", "input_text");
                        part.text("text", &text);
                    });
                    for (member, (name, asset)) in assets.iter().enumerate() {
                        parts.object(|part| {
                            part.text("type", "input_text");
                            part.text("text", name);
                        });
                        parts.object(|part| {
                            part.text("type", "input_image");
                            let link = data_link(asset);
                            match self.members.iter().position(|one| *one == member) {
                                Some(at) => gaps.push((gap(part.key("image_url"), &link), self.gaps[at].1)),
                                None => part.text("image_url", &format!("{link}{}", asset.str_of("data_base64"))),
                            }
                        });
                    }
                });
            });
        });
    }

    /// Why a provider of this format cannot take it.
    pub fn fits(&self, to: DecisionForm) -> Result<(), Problem> {
        if to == self.form {
            return Ok(());
        }
        let root = self.tree()?;
        DecisionQuestion::all(self.form, &root)?.iter().try_for_each(|one| one.fits(to))?;
        if to == DecisionForm::SystemOne && self.pictures > 0 {
            let text = "`input`: the provider of this model takes no pictures in this format.";
            return Err(Problem::unsupported("input", text));
        }
        Ok(())
    }
}

/// A picture as a data link, up to its data.
fn data_link(asset: &Node<'_>) -> String {
    let format = match asset.str_of("format") {
        "jpg" | "jpeg" => "jpeg",
        _ => "png",
    };
    format!("data:image/{format};base64,")
}

/// A body of the other format gets no answer here: it would be a wrong one.
fn other_form(form: DecisionForm, field: &str) -> Problem {
    let other = form.other();
    let text = format!(
        "`{field}`: this is the format of `POST {}`; `POST {}` takes `{}` and its own questions.",
        other.path(),
        form.path(),
        form.read_in()
    );
    Problem::new(Code::InvalidParameter, field, text)
}
