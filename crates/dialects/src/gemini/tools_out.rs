//! Tools and the choice among them, written for a provider that speaks Gemini's generateContent.

use crate::hub::{
    Ask, Carry, FREE_TEXT, Tool, ToolChoice, ToolKind, any_text, chosen_name, free_text_schema, sent_name,
};
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::{Array, Object, lossy};

pub(super) fn write(ask: &Ask<'_>, body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    carry.drop_if("parallel_tool_calls", ask.parallel == Some(false))?;
    if ask.tools.is_empty() {
        return Ok(());
    }
    let loose = match &ask.choice {
        Some(ToolChoice::Allowed { names, required: false }) => {
            carry.drop("tool_choice.allowed_tools")?;
            Some(names)
        }
        _ => None,
    };
    let mut declared = Vec::new();
    let mut list = Array::begin(&mut declared);
    let mut search = false;
    for tool in &ask.tools {
        match &tool.kind {
            ToolKind::WebSearch(_) => search = true,
            // None is left.
            ToolKind::Hosted(_) => {}
            _ if loose.is_some_and(|names| !names.contains(&tool.name)) => {}
            _ => declare(tool, &mut list, carry)?,
        }
    }
    list.end();
    body.array("tools", |list| {
        if declared != b"[]" {
            list.object(|one| one.raw("functionDeclarations", &lossy(&declared)));
        }
        if search {
            list.object(|one| one.raw("googleSearch", "{}"));
        }
    });
    choice(ask, body, carry)
}

fn choice(ask: &Ask<'_>, body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    if ask.chooses_search() {
        // Whether to search is always the model's own affair.
        return carry.drop("tool_choice");
    }
    let sent = |name: &str| chosen_name(Dialect::Gemini, &ask.tools, name).into_owned();
    let (mode, names) = match &ask.choice {
        None => return Ok(()),
        Some(ToolChoice::None) => ("NONE", Vec::new()),
        Some(ToolChoice::Auto | ToolChoice::Allowed { required: false, .. }) => ("AUTO", Vec::new()),
        Some(ToolChoice::Required) => ("ANY", Vec::new()),
        Some(ToolChoice::Named(name)) => ("ANY", vec![sent(name)]),
        Some(ToolChoice::Allowed { names, required: true }) => ("ANY", names.iter().map(|name| sent(name)).collect()),
        Some(ToolChoice::Foreign(_)) => {
            return Err(Problem::unsupported("tool_choice", "The model's provider has no such tool choice."));
        }
    };
    body.object("toolConfig", |config| {
        config.object("functionCallingConfig", |inner| {
            inner.text("mode", mode);
            if !names.is_empty() {
                inner.array("allowedFunctionNames", |list| names.iter().for_each(|name| list.text(name)));
            }
        });
    });
    Ok(())
}

fn declare(tool: &Tool<'_>, list: &mut Array<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    let schema = match &tool.kind {
        ToolKind::Function { schema, strict, .. } => {
            carry.drop_if(&format!("{}.strict", tool.at), *strict == Some(true))?;
            schema.as_deref().map(str::to_owned)
        }
        ToolKind::Custom { format } => {
            carry.drop_if(&format!("{}.format", tool.at), !any_text(*format))?;
            Some(free_text_schema(FREE_TEXT))
        }
        _ => None,
    };
    list.object(|one| {
        one.text("name", &sent_name(Dialect::Gemini, tool.namespace.as_deref(), &tool.name));
        one.text("description", tool.description.as_deref().unwrap_or(""));
        one.maybe_raw("parametersJsonSchema", schema.as_deref());
    });
    Ok(())
}
