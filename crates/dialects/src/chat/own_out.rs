//! Messages of a chat client written again for a chat provider: as they were, with nothing added, joined or moved.

use super::turns_out::{write_call, write_part};
use crate::hub::{Call, Carry, Part, Role, Shape, Turn};
use tollgate_wire::Problem;
use tollgate_wire::json::{Array, Object};

/// What anybody but the assistant and tools said.
pub(super) fn own_message(turn: &Turn<'_>, message: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    own_content(&turn.parts, turn.shape, turn, message, carry)?;
    message.maybe("phase", turn.phase.as_deref());
    carry.own(message, "", &turn.rest);
    Ok(())
}

/// `content` in the shape it had.
fn own_content(
    parts: &[Part<'_>],
    shape: Option<Shape>,
    turn: &Turn<'_>,
    message: &mut Object<'_>,
    carry: &mut Carry<'_>,
) -> Result<(), Problem> {
    let mut said = parts.iter().filter(|part| match part {
        Part::Thought { .. } | Part::Call(_) | Part::Result { .. } => false,
        Part::Refusal { apart, .. } => !apart,
        _ => true,
    });
    match (shape, said.next()) {
        (None, _) => {}
        (Some(Shape::Text), Some(Part::Text { text, .. })) => message.text("content", text),
        (Some(Shape::Text), _) => message.text("content", ""),
        (Some(Shape::List), first) => {
            let mut inner = Array::begin(message.key("content"));
            for part in first.into_iter().chain(said) {
                write_part(part, turn, &mut inner, carry)?;
            }
            inner.end();
        }
    }
    Ok(())
}

/// A tool's message, or a legacy function's, as it was.
pub(super) fn own_result(part: &Part<'_>, list: &mut Array<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    let Part::Result { id, name, parts, shape, made, error, rest, .. } = part else { return Ok(()) };
    let mut message = Object::begin(list.item());
    message.text("role", if *made { "function" } else { "tool" });
    if !made {
        message.text("tool_call_id", id);
    }
    message.maybe("name", name.as_deref());
    let turn = Turn::new(Role::User, Vec::new(), String::new());
    own_content(parts, *shape, &turn, &mut message, carry)?;
    if *error {
        message.bool("is_error", true);
    }
    carry.own(&mut message, "", rest);
    message.end();
    Ok(())
}

/// An assistant's message as it was. Its thoughts are among the members that are left.
pub(super) fn own_assistant(turn: &Turn<'_>, list: &mut Array<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    let mut calls: Vec<&Call<'_>> = turn.calls().collect();
    let old = if turn.old_call { calls.pop() } else { None };
    let mut message = Object::begin(list.item());
    message.text("role", "assistant");
    message.maybe("name", turn.name.as_deref());
    own_content(&turn.parts, turn.shape, turn, &mut message, carry)?;
    for part in &turn.parts {
        if let Part::Refusal { text, apart: true, .. } = part {
            message.text("refusal", text);
        }
    }
    if !calls.is_empty() {
        let mut inner = Array::begin(message.key("tool_calls"));
        calls.into_iter().try_for_each(|call| write_call(call, &mut inner, carry))?;
        inner.end();
    }
    if let Some(call) = old {
        message.object("function_call", |one| {
            one.filled("name", &call.name);
            if !carry.is_own("arguments", "function", &call.rest) {
                one.filled("arguments", &call.args);
            }
            carry.own(one, "function", &call.rest);
        });
    }
    message.maybe("phase", turn.phase.as_deref());
    carry.own(&mut message, "", &turn.rest);
    message.end();
    Ok(())
}
