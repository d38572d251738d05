//! Puts tool results next to their calls.
//!
//! Providers other than the caller's own want each call answered in the turn right after it, once, in the order of the
//! calls; clients send results late, twice, or in another order. A call without a result, or a result without a call,
//! is refused with its id: making one up would change what the model reads.

use super::part::{Part, Role, Turn};
use crate::problem::Problem;
use std::collections::{HashMap, HashSet};

/// Which neighbours of the same role become one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merge {
    Nothing,
    Assistants,
    All,
}

pub(crate) fn paired<'a>(turns: Vec<Turn<'a>>, merge: Merge) -> Result<Vec<Turn<'a>>, Problem> {
    let calls: HashSet<String> = turns.iter().flat_map(Turn::calls).map(|call| call.id.to_string()).collect();
    let mut results = HashMap::new();
    let mut kept: Vec<Turn<'a>> = Vec::with_capacity(turns.len());
    for mut turn in turns {
        let before = turn.parts.len();
        let mut parts = Vec::with_capacity(before);
        for part in turn.parts {
            match part {
                Part::Result { ref id, .. } => {
                    if !calls.contains(id.as_ref()) {
                        let text = format!("The tool result `{}` has no call before it.", short(id));
                        return Err(Problem::new(crate::error::Code::InvalidRequest, &turn.at, text));
                    }
                    results.insert(id.to_string(), part);
                }
                other => parts.push(other),
            }
        }
        turn.parts = parts;
        // A turn of results only still ends the turn before it.
        if !turn.parts.is_empty() || before > 0 || turn.role != Role::User {
            kept.push(turn);
        }
    }
    let mut out: Vec<Turn<'a>> = Vec::with_capacity(kept.len() + 4);
    let mut open: Vec<String> = Vec::new();
    for turn in kept {
        if turn.role != Role::Assistant {
            answer(&mut out, &mut open, &mut results)?;
        }
        open.extend(turn.calls().map(|call| call.id.to_string()));
        push(&mut out, turn, merge);
    }
    answer(&mut out, &mut open, &mut results)?;
    Ok(out)
}

/// Adds the turn that answers the open calls.
fn answer<'a>(
    out: &mut Vec<Turn<'a>>,
    open: &mut Vec<String>,
    results: &mut HashMap<String, Part<'a>>,
) -> Result<(), Problem> {
    if open.is_empty() {
        return Ok(());
    }
    let at = out.last().map(|turn| turn.at.clone()).unwrap_or_default();
    let mut parts = Vec::with_capacity(open.len());
    for id in open.drain(..) {
        let Some(result) = results.remove(&id) else {
            let text = format!("The tool call `{}` has no result.", short(&id));
            return Err(Problem::new(crate::error::Code::InvalidRequest, &at, text));
        };
        parts.push(result);
    }
    out.push(Turn::new(Role::User, parts, at));
    Ok(())
}

fn push<'a>(out: &mut Vec<Turn<'a>>, turn: Turn<'a>, merge: Merge) {
    if turn.parts.is_empty() && turn.role == Role::User {
        return;
    }
    if let Some(last) = out.last_mut()
        && last.role == turn.role
        && match merge {
            Merge::Nothing => false,
            Merge::Assistants => turn.role == Role::Assistant,
            Merge::All => !turn.role.is_system(),
        }
    {
        last.parts.extend(turn.parts);
        return;
    }
    out.push(turn);
}

fn short(id: &str) -> &str {
    &id[..id.floor_char_boundary(64)]
}

#[cfg(test)]
mod tests {
    use super::super::part::{Call, CallKind};
    use super::*;

    fn call(id: &'static str) -> Part<'static> {
        Part::Call(Call {
            id: id.into(),
            name: "f".into(),
            namespace: None,
            kind: CallKind::Function,
            args: "{}".into(),
            cached: false,
            rest: Vec::new(),
        })
    }

    fn result(id: &'static str, text: &'static str) -> Part<'static> {
        Part::Result {
            id: id.into(),
            name: None,
            parts: vec![Part::text(text)],
            shape: None,
            made: false,
            error: false,
            kind: CallKind::Function,
            cached: false,
            rest: Vec::new(),
        }
    }

    fn turns(list: Vec<(Role, Vec<Part<'static>>)>) -> Vec<Turn<'static>> {
        let number = |(at, (role, parts))| Turn::new(role, parts, format!("messages[{at}]"));
        list.into_iter().enumerate().map(number).collect()
    }

    fn told(turns: &[Turn<'_>]) -> String {
        let one = |turn: &Turn<'_>| {
            let parts: Vec<String> = turn
                .parts
                .iter()
                .map(|part| match part {
                    Part::Text { text, .. } => text.to_string(),
                    Part::Call(call) => format!("call {}", call.id),
                    Part::Result { id, parts, .. } => format!("result {id} {:?}", parts.len()),
                    _ => "?".into(),
                })
                .collect();
            format!("{:?}[{}]", turn.role, parts.join(", "))
        };
        turns.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    use Role::{Assistant, System, User};

    #[test]
    fn results_follow_their_calls() {
        let mixed = turns(vec![
            (User, vec![Part::text("a")]),
            (User, vec![Part::text("b")]),
            (Assistant, vec![call("1")]),
            (Assistant, vec![call("2")]),
            (User, vec![result("2", "two")]),
            (System, vec![Part::text("s")]),
            (User, vec![Part::text("c"), result("1", "old"), Part::text("d")]),
            (User, vec![result("1", "new")]),
        ]);
        let all = paired(mixed.clone(), Merge::All).unwrap();
        assert_eq!(
            told(&all),
            "User[a, b] Assistant[call 1, call 2] User[result 1 1, result 2 1] System[s] User[c, d]"
        );
        let chat = paired(mixed.clone(), Merge::Assistants).unwrap();
        assert!(told(&chat).starts_with("User[a] User[b] Assistant[call 1, call 2] User[result 1 1, result 2 1]"));
        let Part::Result { parts, .. } = &all[2].parts[0] else { panic!() };
        assert_eq!(parts, &[Part::text("new")], "the last content, in the first place");
        assert!(
            told(&paired(mixed, Merge::Nothing).unwrap()).contains("Assistant[call 1] Assistant[call 2] User[result")
        );
    }

    #[test]
    fn orphans_are_refused_by_id() {
        let lonely =
            turns(vec![(User, vec![Part::text("a")]), (Assistant, vec![call("x1")]), (User, vec![Part::text("b")])]);
        let problem = paired(lonely, Merge::All).unwrap_err();
        assert!(problem.message.contains("`x1`"), "{}", problem.message);
        assert_eq!(problem.param.as_deref(), Some("messages[1]"));
        let answer = turns(vec![(User, vec![result("x2", "r")])]);
        assert!(paired(answer, Merge::All).unwrap_err().message.contains("`x2`"));
    }
}
