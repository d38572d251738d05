//! Which tools run at the provider: one list per dialect, and the name that all dialects share.

use super::Reads;
use std::borrow::Cow;
use std::ops::Range;
use tollgate_wire::Dialect;
use tollgate_wire::json::{BrokenJson, Scan, whole_number};

/// Who runs a tool of a kind.
#[derive(Clone, Copy)]
enum Runs {
    /// The caller: the provider only asks for it.
    Caller,
    /// The provider; the shared name.
    Provider(&'static str),
    /// A list of tools under one name.
    Group,
}

/// Kinds by how they begin, the date behind left out. A kind that is in no list runs at the
/// provider, under its own name.
const CHAT: &[(&str, Runs)] = &[
    ("function", Runs::Caller),
    ("custom", Runs::Caller),
    ("web_search", Runs::Provider("web_search")),
    ("builtin_function", Runs::Provider("web_search")),
    ("code_interpreter", Runs::Provider("code_execution")),
    ("file_search", Runs::Provider("file_search")),
    ("retrieval", Runs::Provider("file_search")),
    ("mcp", Runs::Provider("mcp")),
];

const ANTHROPIC: &[(&str, Runs)] = &[
    ("custom", Runs::Caller),
    ("function", Runs::Caller),
    ("bash_", Runs::Caller),
    ("text_editor_", Runs::Caller),
    ("computer_", Runs::Caller),
    ("memory_", Runs::Caller),
    ("web_search_", Runs::Provider("web_search")),
    ("web_fetch_", Runs::Provider("web_fetch")),
    ("code_execution_", Runs::Provider("code_execution")),
    ("tool_search_", Runs::Provider("tool_search")),
    ("mcp_toolset", Runs::Provider("mcp")),
];

const RESPONSES: &[(&str, Runs)] = &[
    ("function", Runs::Caller),
    ("custom", Runs::Caller),
    ("namespace", Runs::Group),
    ("local_shell", Runs::Caller),
    ("apply_patch", Runs::Caller),
    ("computer", Runs::Caller),
    ("shell", Runs::Provider("shell")),
    ("web_search", Runs::Provider("web_search")),
    ("x_search", Runs::Provider("x_search")),
    ("collections_search", Runs::Provider("file_search")),
    ("file_search", Runs::Provider("file_search")),
    ("code_interpreter", Runs::Provider("code_execution")),
    ("programmatic_tool_calling", Runs::Provider("code_execution")),
    ("image_generation", Runs::Provider("image_generation")),
    ("tool_search", Runs::Provider("tool_search")),
    ("mcp", Runs::Provider("mcp")),
];

/// Members of a tool object, in both spellings.
const GEMINI: &[(&str, Runs)] = &[
    ("functionDeclarations", Runs::Caller),
    ("function_declarations", Runs::Caller),
    ("computerUse", Runs::Caller),
    ("computer_use", Runs::Caller),
    ("googleSearch", Runs::Provider("web_search")),
    ("google_search", Runs::Provider("web_search")),
    ("enterpriseWebSearch", Runs::Provider("web_search")),
    ("enterprise_web_search", Runs::Provider("web_search")),
    ("codeExecution", Runs::Provider("code_execution")),
    ("code_execution", Runs::Provider("code_execution")),
    ("urlContext", Runs::Provider("web_fetch")),
    ("url_context", Runs::Provider("web_fetch")),
    ("googleMaps", Runs::Provider("maps")),
    ("google_maps", Runs::Provider("maps")),
    ("fileSearch", Runs::Provider("file_search")),
    ("file_search", Runs::Provider("file_search")),
    ("retrieval", Runs::Provider("file_search")),
    ("mcpServers", Runs::Provider("mcp")),
    ("mcp_servers", Runs::Provider("mcp")),
];

/// Options of the tool that draws that make a picture cost more at its provider, each with the
/// values that do not. The last part of a name is how a request spells it.
const DEAR: &[(&str, &[&str])] = &[
    ("image_generation.model", &[]),
    ("image_generation.quality", &["auto", "low"]),
    ("image_generation.size", &["auto", "1024x1024"]),
    ("image_generation.input_fidelity", &["low"]),
    ("image_generation.partial_images", &["0"]),
];

/// Kinds that the caller runs unless they name a place at the provider.
const ENVIRONMENT: &str = "environment";
/// Longest name of a tool that nobody knows.
const MOST_NAME: usize = 64;

fn runs(list: &'static [(&str, Runs)], kind: &str) -> Runs {
    let known = list.iter().find(|(start, _)| kind.starts_with(start)).map(|(_, runs)| *runs);
    known.unwrap_or(Runs::Provider(""))
}

fn own_name(kind: &str) -> Cow<'static, str> {
    Cow::Owned(kind[..kind.floor_char_boundary(MOST_NAME)].to_owned())
}

/// One tool as far as it matters who runs it.
#[derive(Default)]
struct Tool<'a> {
    kind: Option<Cow<'a, str>>,
    most: Option<u64>,
    open: Option<Range<usize>>,
    dear: Vec<(&'static str, usize)>,
    /// Names a place at the provider where it runs.
    away: bool,
    named: bool,
}

/// Finds the tools of a list that run at the provider. `base`: where the list begins in the body.
pub(crate) fn hosted(dialect: Dialect, raw: &[u8], base: usize, reads: &mut Reads) -> Result<(), BrokenJson> {
    let list = match dialect {
        Dialect::Chat => CHAT,
        Dialect::Anthropic => ANTHROPIC,
        Dialect::Responses => RESPONSES,
        Dialect::Gemini => return hosted_of_gemini(raw, base, reads),
    };
    each(raw, base, |raw, at, reads| one(list, raw, at, reads), reads)
}

/// Calls `look` with each object of a list and its place.
fn each(
    raw: &[u8],
    base: usize,
    mut look: impl FnMut(&[u8], usize, &mut Reads) -> Result<(), BrokenJson>,
    reads: &mut Reads,
) -> Result<(), BrokenJson> {
    let mut scan = Scan::new(raw);
    if scan.peek() != Some(b'[') {
        return Ok(());
    }
    scan.array(|scan| {
        let first = scan.peek();
        let at = scan.at();
        let raw = scan.value()?;
        if first == Some(b'{') { look(raw, base + at, reads) } else { Ok(()) }
    })
}

fn one(list: &'static [(&str, Runs)], raw: &[u8], at: usize, reads: &mut Reads) -> Result<(), BrokenJson> {
    let mut tool = Tool::default();
    let mut inner = None;
    Scan::new(raw).object(|key, scan| {
        let first = scan.peek();
        let place = scan.at();
        if key.is("type") && first == Some(b'"') {
            tool.kind = Some(scan.string()?.text());
            return Ok(());
        }
        let value = scan.value()?;
        if key.is("max_uses") {
            tool.most = whole_number(value);
            tool.open = (value == b"null").then(|| at + place..at + place + value.len());
        } else if key.is(ENVIRONMENT) {
            tool.away |= first == Some(b'{') && !is_local(value);
        } else if key.is("tools") {
            inner = Some((value, at + place));
        } else if key.is("function") || key.is("name") {
            tool.named = true;
        } else if let Some(option) = dear(&key.text(), value) {
            tool.dear.push((option, at + place));
        }
        Ok::<(), BrokenJson>(())
    })?;
    // Without a kind it is a function: in chat some leave it out, Anthropic's have none.
    let Some(kind) = tool.kind.filter(|kind| !kind.is_empty()) else {
        if !tool.named {
            reads.runs("tool", None, at);
        }
        return Ok(());
    };
    match runs(list, &kind) {
        Runs::Caller => {}
        Runs::Provider("shell") if !tool.away => {}
        Runs::Provider(name) => {
            let name = if name.is_empty() { own_name(&kind) } else { Cow::Borrowed(name) };
            let before = reads.hosted.len();
            reads.runs(name, tool.most, at);
            if let Some(new) = reads.hosted.get_mut(before) {
                new.open = tool.open;
                new.dear = tool.dear;
                new.dear.retain(|(option, _)| option.starts_with(new.name.as_ref()));
            }
        }
        Runs::Group => {
            if let Some((inner, base)) = inner {
                each(inner, base, |raw, at, reads| one(list, raw, at, reads), reads)?;
            }
        }
    }
    Ok(())
}

/// The option of this name, where its value makes a use cost more.
fn dear(name: &str, value: &[u8]) -> Option<&'static str> {
    let (option, usual) = DEAR.iter().find(|(option, _)| option.rsplit('.').next() == Some(name))?;
    let text = match value.first() {
        Some(b'"') => Scan::new(value).string().ok()?.text(),
        _ => String::from_utf8_lossy(value),
    };
    let costs = text != "null" && !usual.iter().any(|usual| text.eq_ignore_ascii_case(usual));
    costs.then_some(*option)
}

/// `{"type": "local"}`.
fn is_local(raw: &[u8]) -> bool {
    let mut local = false;
    let read = Scan::new(raw).object(|key, scan| {
        if key.is("type") && scan.peek() == Some(b'"') {
            local |= scan.string()?.is("local");
            return Ok(());
        }
        scan.skip()
    });
    read.is_ok() && local
}

/// Gemini names its tools by members.
pub(crate) fn hosted_of_gemini(raw: &[u8], base: usize, reads: &mut Reads) -> Result<(), BrokenJson> {
    let look = |raw: &[u8], at: usize, reads: &mut Reads| {
        Scan::new(raw).object(|key, scan| {
            scan.peek();
            let place = at + scan.at();
            let name = key.text();
            let given = !matches!(scan.value()?, b"null" | b"false");
            match runs(GEMINI, &name) {
                Runs::Provider("") if given => reads.runs(own_name(&name), None, place),
                Runs::Provider(name) if given => reads.runs(name, None, place),
                _ => {}
            }
            Ok::<(), BrokenJson>(())
        })
    };
    // A single object may stand without its list.
    if raw.first() == Some(&b'{') { look(raw, base, reads) } else { each(raw, base, look, reads) }
}
