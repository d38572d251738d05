//! Puts tool results next to their calls.
//!
//! Providers other than the caller's own want each call answered in the turn right after it, once,
//! in the order of the calls; clients send results late, twice, or in another order, and use an id
//! for more than one call. A call without a result, or a result without a call, is refused with its
//! id: making one up would change what the model reads.

use super::part::{Part, Role, Thought, Turn};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use tollgate_wire::Problem;

/// Which neighbours of the same role become one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merge {
    Nothing,
    Assistants,
    All,
}

pub(crate) fn paired<'a>(turns: Vec<Turn<'a>>, merge: Merge) -> Result<Vec<Turn<'a>>, Problem> {
    let (others, mut results) = taken_out(turns)?;
    let mut out: Vec<Turn<'a>> = Vec::with_capacity(others.len() + 4);
    let (mut begun, mut answered) = (0, 0);
    for turn in others {
        if turn.role != Role::Assistant {
            answer(&mut out, answered..begun, &mut results)?;
            answered = begun;
        }
        begun += turn.calls().count();
        push(&mut out, turn, merge);
    }
    answer(&mut out, answered..begun, &mut results)?;
    Ok(out)
}

/// The calls of one id. Clients repeat ids, and providers that give none are given the same by some
/// gateways for the same call.
#[derive(Default)]
struct Same {
    /// Numbers of the calls, in their order.
    calls: Vec<usize>,
    begun: usize,
    answered: usize,
    sealed: usize,
}

impl Same {
    /// The call that the next result answers: the first that waits for one, or the last once more.
    fn next_answered(&mut self) -> usize {
        if self.answered < self.begun || self.answered == 0 {
            self.answered += 1;
        }
        self.calls[self.answered - 1]
    }

    /// The call that the next seal is bound to: the one that follows it, or a later one where all
    /// seals stand in front.
    fn next_sealed(&mut self) -> Option<usize> {
        let at = self.begun.max(self.sealed);
        self.sealed = at + 1;
        self.calls.get(at).copied()
    }
}

/// The conversation without its results, and the result of each call by the call's number. An id
/// that comes again becomes another one, as providers want it, the same for the call, its result
/// and its seal.
fn taken_out<'a>(turns: Vec<Turn<'a>>) -> Result<(Vec<Turn<'a>>, Vec<Answered<'a>>), Problem> {
    let mut same: HashMap<String, Same> = HashMap::new();
    let mut results: Vec<Answered<'a>> = Vec::new();
    for call in turns.iter().flat_map(Turn::calls) {
        same.entry(call.id.to_string()).or_default().calls.push(results.len());
        results.push(Answered { own: call.id.clone(), id: call.id.clone(), result: None });
    }
    for (id, again) in &same {
        for (times, number) in again.calls.iter().enumerate().skip(1) {
            results[*number].id = another(id, times + 1, &same).into();
        }
    }
    let mut begun = 0;
    let mut others: Vec<Turn<'a>> = Vec::with_capacity(turns.len());
    for mut turn in turns {
        let before = turn.parts.len();
        let mut parts = Vec::with_capacity(before);
        for mut part in turn.parts {
            match &mut part {
                Part::Result { id, .. } => {
                    let Some(call) = same.get_mut(id.as_ref()).map(Same::next_answered) else {
                        let text = format!("The tool result `{}` has no call before it.", short(id));
                        return Err(Problem::new(tollgate_wire::error::Code::InvalidRequest, &turn.at, text));
                    };
                    id.clone_from(&results[call].id);
                    results[call].result = Some(part);
                    continue;
                }
                Part::Call(call) => {
                    if let Some(same) = same.get_mut(call.id.as_ref()) {
                        same.begun += 1;
                    }
                    call.id.clone_from(&results[begun].id);
                    begun += 1;
                }
                Part::Thought { thought: Thought { seal: Some(seal), .. }, .. } => {
                    if let Some(call) = same.get_mut(seal.bound.as_ref()).and_then(Same::next_sealed) {
                        seal.bound.clone_from(&results[call].id);
                    }
                }
                _ => {}
            }
            parts.push(part);
        }
        turn.parts = parts;
        // A turn of results only still ends the turn before it.
        if !turn.parts.is_empty() || before > 0 || turn.role != Role::User {
            others.push(turn);
        }
    }
    Ok((others, results))
}

/// What a call is called by its client and from here on, and what came of it.
struct Answered<'a> {
    own: Cow<'a, str>,
    id: Cow<'a, str>,
    result: Option<Part<'a>>,
}

/// An id for the call that has this one as so many others before it. Not one that is there already.
fn another(id: &str, times: usize, same: &HashMap<String, Same>) -> String {
    let mut other = format!("{id}_{times}");
    while same.contains_key(&other) {
        other.push('_');
    }
    other
}

/// Adds the turn that answers these calls.
fn answer<'a>(out: &mut Vec<Turn<'a>>, calls: Range<usize>, results: &mut [Answered<'a>]) -> Result<(), Problem> {
    if calls.is_empty() {
        return Ok(());
    }
    let at = out.last().map(|turn| turn.at.clone()).unwrap_or_default();
    let mut parts = Vec::with_capacity(calls.len());
    for call in &mut results[calls] {
        let Some(result) = call.result.take() else {
            let text = format!("The tool call `{}` has no result.", short(&call.own));
            return Err(Problem::new(tollgate_wire::error::Code::InvalidRequest, &at, text));
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
    use super::super::part::{CallKind, ToolCall};
    use super::super::{Seal, SealMaker};
    use super::*;

    fn call(id: &'static str) -> Part<'static> {
        Part::Call(ToolCall {
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

    fn shown(turns: &[Turn<'_>]) -> String {
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
            shown(&all),
            "User[a, b] Assistant[call 1, call 2] User[result 1 1, result 2 1] System[s] User[c, d]"
        );
        let chat = paired(mixed.clone(), Merge::Assistants).unwrap();
        assert!(shown(&chat).starts_with("User[a] User[b] Assistant[call 1, call 2] User[result 1 1, result 2 1]"));
        let Part::Result { parts, .. } = &all[2].parts[0] else { panic!() };
        assert_eq!(parts, &[Part::text("new")], "the last content, in the first place");
        assert!(
            shown(&paired(mixed, Merge::Nothing).unwrap()).contains("Assistant[call 1] Assistant[call 2] User[result")
        );
    }

    /// The ids of a conversation and what each result says.
    fn ids(turns: &[Turn<'_>]) -> String {
        let one = |part: &Part<'_>| match part {
            Part::Call(call) => format!("call {}", call.id),
            Part::Result { id, parts, .. } => match &parts[..] {
                [Part::Text { text, .. }] => format!("{id}={text}"),
                _ => panic!(),
            },
            Part::Thought { thought, .. } => format!("seal {}", thought.seal.as_ref().unwrap().bound),
            _ => "?".into(),
        };
        turns.iter().flat_map(|turn| &turn.parts).map(one).collect::<Vec<_>>().join(", ")
    }

    fn seal(id: &'static str) -> Part<'static> {
        let seal = Some(Seal::new(SealMaker::Gemini, "s", id));
        Part::thought(Thought { seal, ..Thought::default() })
    }

    #[test]
    fn an_id_may_come_again() {
        for (list, expected) in [
            // Turn by turn, the second with a result given twice.
            (
                vec![
                    (Assistant, vec![call("x")]),
                    (User, vec![result("x", "one")]),
                    (Assistant, vec![call("x")]),
                    (User, vec![result("x", "two"), result("x", "two again")]),
                    (Assistant, vec![call("x_2"), call("x")]),
                    (User, vec![result("x", "four"), result("x_2", "three")]),
                ],
                "call x, x=one, call x_2_, x_2_=two again, call x_2, call x_3, x_2=three, x_3=four",
            ),
            // At once; then late, when both are open.
            (
                vec![(Assistant, vec![call("x"), call("x")]), (User, vec![result("x", "one"), result("x", "two")])],
                "call x, call x_2, x=one, x_2=two",
            ),
            (
                vec![
                    (Assistant, vec![call("")]),
                    (User, vec![Part::text("wait")]),
                    (Assistant, vec![call("")]),
                    (User, vec![result("", "one"), result("", "two")]),
                ],
                "call , =one, ?, call _2, _2=two",
            ),
            // A seal goes with its call, and one in front of all calls with the call of its place.
            (
                vec![
                    (Assistant, vec![seal("x"), call("x")]),
                    (User, vec![result("x", "one")]),
                    (Assistant, vec![seal("x"), seal("x"), call("x"), call("x")]),
                    (User, vec![result("x", "two"), result("x", "three")]),
                ],
                "seal x, call x, x=one, seal x_2, seal x_3, call x_2, call x_3, x_2=two, x_3=three",
            ),
            // A result before its call.
            (vec![(User, vec![result("x", "one")]), (Assistant, vec![call("x")])], "call x, x=one"),
        ] {
            assert_eq!(ids(&paired(turns(list), Merge::All).unwrap()), expected);
        }
        let short = vec![(Assistant, vec![call("x"), call("x")]), (User, vec![result("x", "one")])];
        assert!(paired(turns(short), Merge::All).unwrap_err().message.contains("`x` has no result"));
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
