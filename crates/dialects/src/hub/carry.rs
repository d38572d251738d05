//! What readers and writers of requests share: members left over, data URLs, and the record of what
//! is left behind.

use super::base64::standard;
use super::hosted;
use super::names::are_functions;
use super::policy::{is_carried, leave_out};
use super::schema::{for_anthropic, labelled, object_schema};
use super::strict::fits_strict;
use super::{
    Ask, Dropped, Effort, Fields, Media, MediaSource, Member, OutputFormat, Part, Reasoning, Target, Tool, ToolChoice,
    ToolKind,
};
use std::borrow::Cow;
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::Node;

/// Members that are not in `known`; null asks for nothing.
pub(crate) fn others<'a>(node: &Node<'a>, known: &[&str]) -> Vec<Member<'a>> {
    let left = node.members().iter().filter(|(name, value)| !value.is_null() && !known.contains(&name.as_ref()));
    left.map(|(name, value)| Member { place: "", name: name.clone(), raw: value.raw }).collect()
}

/// A part of a text as borrowed as the text itself.
pub(crate) fn part_of<'a>(text: &Cow<'a, str>, from: usize, to: usize) -> Cow<'a, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[from..to]),
        Cow::Owned(text) => Cow::Owned(text[from..to].to_owned()),
    }
}

/// A link, or the data it carries itself.
pub(crate) fn place_of_url<'a>(url: &Cow<'a, str>) -> MediaSource<'a> {
    if url.len() > 5
        && url.is_char_boundary(5)
        && url[..5].eq_ignore_ascii_case("data:")
        && let Some(comma) = url.find(',')
        && let Some(mark) = url[..comma].rfind(";base64")
    {
        let mime = part_of(url, 5, mark.max(5));
        return MediaSource::Data { mime, base64: part_of(url, comma + 1, url.len()) };
    }
    MediaSource::Url(url.clone())
}

/// The usual spelling of a type, without parameters.
pub(crate) fn tidy_mime(mime: &str) -> &str {
    let mime = mime.split(';').next().unwrap_or_default();
    if mime == "image/jpg" { "image/jpeg" } else { mime }
}

/// A data URL.
pub(crate) fn data_url(mime: &str, base64: &str) -> String {
    format!("data:{mime};base64,{base64}")
}

/// The same with both as every provider takes them.
pub(crate) fn tidy_data_url(mime: &str, base64: &str) -> String {
    data_url(tidy_mime(mime), &standard(Cow::Borrowed(base64)))
}

fn openai(dialect: Dialect) -> bool {
    matches!(dialect, Dialect::Chat | Dialect::Responses)
}

/// A request being written for a provider of another dialect: where to, and what was left behind.
/// Within one dialect the client's bytes pass, and nothing of this runs.
pub(crate) struct Carry<'t> {
    pub target: &'t Target,
    pub dropped: Dropped,
    origin: Dialect,
}

impl<'t> Carry<'t> {
    /// Begins with what is left over in turns, parts and tools: it is reported here, whatever
    /// becomes of its object. Tools and cache marks that the target does not have are gone from the
    /// request afterwards.
    pub fn begin(ask: &mut Ask<'_>, target: &'t Target) -> Result<Self, Problem> {
        debug_assert_ne!(ask.origin, target.dialect, "the client's own bytes pass");
        let mut carry = Carry { target, dropped: Dropped::default(), origin: ask.origin };
        hosted::leave_out(ask, &mut carry)?;
        carry.beyond(ask)?;
        carry.loosen(ask)?;
        carry.only_here(ask)?;
        if are_functions(&ask.tools) && target.dialect != Dialect::Gemini {
            // A client that declares `functions` reads one call of an answer.
            ask.parallel = ask.parallel.or(Some(false));
        }
        for turn in &ask.turns {
            carry.left(&turn.rest)?;
            carry.left_of(&turn.parts)?;
        }
        for tool in &ask.tools {
            carry.left(&tool.rest)?;
        }
        carry.left(&ask.groups_rest)?;
        if let Some(mark) = ask.rest.iter().find(|member| ask.cache_all && member.path() == "cache_control") {
            carry.left(std::slice::from_ref(mark))?;
        }
        if !target.takes_marks() {
            ask.clear_cache_marks();
        }
        Ok(carry)
    }

    /// What the model cannot do, whatever it is asked: it would refuse the request.
    fn beyond(&mut self, ask: &mut Ask<'_>) -> Result<(), Problem> {
        // A wish in the words of OpenAI's dialects passes as it is.
        let unheard = !self.target.thinks && openai(self.target.dialect) && !openai(ask.origin);
        if unheard && (ask.reasoning.budget.is_some() || ask.reasoning.effort.is_some_and(|one| one != Effort::None)) {
            ask.reasoning = Reasoning { shown: ask.reasoning.shown, ..Reasoning::default() };
            self.drop("reasoning")?;
        }
        let Some((most, asked)) = self.target.most_output.zip(ask.max_output) else { return Ok(()) };
        ask.max_output = Some(asked.min(most));
        let name = match ask.origin {
            Dialect::Chat if ask.old_limit => "max_tokens",
            Dialect::Chat => "max_completion_tokens",
            Dialect::Anthropic => "max_tokens",
            Dialect::Responses => "max_output_tokens",
            Dialect::Gemini => "generationConfig.maxOutputTokens",
        };
        self.drop_if(name, asked > most)
    }

    /// Others hold the model to schemas that OpenAI refuses under `strict`: those are sent without
    /// it. Who speaks OpenAI's words knows its rules, and is refused as there.
    fn loosen(&mut self, ask: &mut Ask<'_>) -> Result<(), Problem> {
        if openai(ask.origin) || !openai(self.target.dialect) {
            return Ok(());
        }
        let loose = |schema: &Option<Cow<'_, str>>| !schema.as_deref().is_some_and(fits_strict);
        if let Some(OutputFormat::Schema { schema, strict, .. }) = &mut ask.format
            && loose(schema)
        {
            *strict = None;
        }
        for tool in &mut ask.tools {
            if let ToolKind::Function { schema, strict, .. } = &mut tool.kind
                && *strict == Some(true)
                && loose(schema)
            {
                *strict = None;
                self.drop(&format!("{}.strict", tool.at))?;
            }
        }
        Ok(())
    }

    /// What the hub has a place for and no other dialect but one or two: reported here, because
    /// turns are joined on their way.
    fn only_here(&mut self, ask: &Ask<'_>) -> Result<(), Problem> {
        let to = self.target.dialect;
        self.drop_if("messages.name", to != Dialect::Chat && ask.turns.iter().any(|turn| turn.name.is_some()))?;
        self.drop_if("phase", to != Dialect::Responses && ask.turns.iter().any(|turn| turn.phase.is_some()))?;
        let forced = !matches!(ask.choice, None | Some(ToolChoice::None | ToolChoice::Auto));
        self.drop_if("tool_choice", ask.tools.is_empty() && forced)?;
        self.drop_if("top_logprobs", !ask.logprobs && ask.top_logprobs.is_some_and(|top| top > 0))
    }

    /// The name of a file, at a place where the target takes none.
    pub fn drop_file_name(&mut self, media: &Media<'_>) -> Result<(), Problem> {
        let name = if self.origin == Dialect::Anthropic { "title" } else { "filename" };
        self.drop_if(name, media.name.is_some())
    }

    /// The wish to see what is thought, or not to, where nothing follows from it.
    pub fn drop_display(&mut self, asked: bool) -> Result<(), Problem> {
        let name = match self.origin {
            Dialect::Anthropic => "thinking.display",
            Dialect::Gemini => "generationConfig.thinkingConfig.includeThoughts",
            Dialect::Chat | Dialect::Responses => "reasoning.exclude",
        };
        self.drop_if(name, asked)
    }

    /// A schema of the output for a provider that takes nothing beside it: its name and description
    /// become the schema's own, as far as it has none. `strict_output` says that the provider
    /// follows it.
    pub fn schema(&mut self, format: &OutputFormat<'_>, strict_output: bool) -> Result<Option<String>, Problem> {
        let OutputFormat::Schema { name, description, schema, strict, .. } = format else { return Ok(None) };
        let place = if self.origin == Dialect::Responses { "text.format" } else { "response_format.json_schema" };
        let (schema, left) =
            labelled(schema.as_deref().unwrap_or("{}"), &[("title", name), ("description", description)]);
        for member in left {
            let member = if member == "title" { "name" } else { member };
            self.drop(&format!("{place}.{member}"))?;
        }
        self.drop_if(&format!("{place}.strict"), *strict == Some(true) && !strict_output)?;
        Ok(Some(schema))
    }

    /// The same as Anthropic's structured output takes it.
    pub fn closed_schema(&mut self, schema: &str) -> Result<String, Problem> {
        let (schema, open) = for_anthropic(schema);
        let place = match self.origin {
            Dialect::Chat => "response_format.json_schema.schema",
            Dialect::Responses => "text.format.schema",
            Dialect::Anthropic => "output_config.format.schema",
            Dialect::Gemini => "generationConfig.responseSchema",
        };
        self.drop_if(&format!("{place}.additionalProperties"), open)?;
        Ok(schema)
    }

    /// The schema of a function's arguments for a provider that wants an object at its root.
    pub fn arguments(&mut self, tool: &Tool<'_>) -> Result<Option<String>, Problem> {
        let ToolKind::Function { schema: Some(schema), .. } = &tool.kind else { return Ok(None) };
        let (sent, other) = object_schema(schema);
        if let Some(other) = other {
            let name = match self.origin {
                Dialect::Chat if !tool.old => "function.parameters",
                Dialect::Anthropic => "input_schema",
                Dialect::Chat | Dialect::Responses | Dialect::Gemini => "parameters",
            };
            self.drop(&format!("{}.{name}{other}", tool.at))?;
        }
        Ok(Some(sent))
    }

    /// Records a field that is not sent; refused when the caller asked for strictness.
    pub fn drop(&mut self, field: &str) -> Result<(), Problem> {
        if self.target.strict {
            let text = format!("`{field}`: the model is served by a provider that has nothing like this.");
            return Err(Problem::unsupported(field, text));
        }
        self.dropped.add(field);
        Ok(())
    }

    pub fn drop_if(&mut self, field: &str, given: bool) -> Result<(), Problem> {
        if given { self.drop(field) } else { Ok(()) }
    }

    /// Sees to the members of the request itself that have no place in the hub: they follow their
    /// policy.
    pub fn rest(&mut self, ask: &Ask<'_>) -> Result<(), Problem> {
        leave_out(self.origin, &ask.rest, self.target.strict, &mut self.dropped)
    }

    /// Nothing is left over that would have to be reported.
    pub fn is_plain(&self, rest: &[Member<'_>]) -> bool {
        rest.iter().all(|member| is_carried(self.origin, member))
    }

    /// A cache mark at a place where the target takes none.
    pub fn drop_cache_mark(&mut self, cached: bool) -> Result<(), Problem> {
        self.drop_if("cache_control", cached)
    }

    fn left_of(&mut self, parts: &[Part<'_>]) -> Result<(), Problem> {
        for part in parts {
            match part {
                Part::Text { rest, .. }
                | Part::Refusal { rest, .. }
                | Part::Thought { rest, .. }
                | Part::Foreign { rest, .. } => self.left(rest)?,
                Part::Image(media) | Part::Audio(media) | Part::Video(media) | Part::File(media) => {
                    self.left(&media.rest)?;
                }
                Part::Call(call) => self.left(&call.rest)?,
                Part::Result { parts, rest, .. } => {
                    self.left(rest)?;
                    self.left_of(parts)?;
                }
            }
        }
        Ok(())
    }

    /// Tells what is left of an object. Cache marks are carried by their position; what else they
    /// say is reported.
    fn left(&mut self, rest: &[Member<'_>]) -> Result<(), Problem> {
        let origin = self.origin;
        for member in rest.iter().filter(|member| !is_carried(origin, member)) {
            match (member.place, member.name.as_ref()) {
                // A hint that changes no answer: reported once, by its name alone.
                ("", mark @ ("cache_control" | "prompt_cache_breakpoint")) if !self.target.takes_marks() => {
                    self.drop(mark)?;
                }
                ("", mark @ ("cache_control" | "prompt_cache_breakpoint")) => {
                    let Ok(node) = Node::read(member.raw) else { continue };
                    let mut fields = Fields::of(&node);
                    let _ = fields.word("type", "ephemeral") || fields.word("mode", "explicit");
                    for more in fields.rest().iter().filter(|more| !is_carried(origin, more)) {
                        self.drop(&format!("{mark}.{}", more.name))?;
                    }
                }
                _ => self.drop(&member.path())?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_urls() {
        let place = place_of_url(&"data:image/jpg;base64,QUJD".into());
        assert_eq!(place, MediaSource::Data { mime: "image/jpg".into(), base64: "QUJD".into() });
        let place = place_of_url(&"data:text/plain;charset=utf-8;base64,QQ==".into());
        assert_eq!(place, MediaSource::Data { mime: "text/plain;charset=utf-8".into(), base64: "QQ==".into() });
        for url in ["https://x.example/a.png", "data:image/png,raw", "data:", "", "d\u{e4}ta:x;base64,"] {
            assert_eq!(place_of_url(&url.into()), MediaSource::Url(url.into()));
        }
    }
}
