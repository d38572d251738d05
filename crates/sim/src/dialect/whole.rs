//! Replies that are not streamed, bent as the scenario says.

use bytes::Bytes;

use super::{Dialect, Said, anthropic, error, gemini, responses, stream};
use crate::events;
use crate::scenario::Scenario as S;
use crate::script::{Ending, Step};

/// The steps of a whole reply; its content length goes along when it is known.
pub(super) fn steps(dialect: Dialect, said: &Said<'_>) -> (Vec<Step>, Ending, Option<usize>) {
    let choice = said.choice;
    let reply = match dialect {
        Dialect::Anthropic => anthropic::object(said),
        Dialect::Responses => responses::object(said),
        Dialect::Gemini => gemini::object(said),
    };
    let reply = reply.to_string();
    let length = Some(reply.len());
    let half = Step::Send(Bytes::copy_from_slice(&reply.as_bytes()[..reply.len() / 2]));
    match choice.scenario {
        S::ErrorMidstream | S::ErrorFirst => {
            let error = error::body(dialect, &stream::failure(choice), &[]).to_string();
            (vec![Step::Send(error.into())], Ending::Broken, None)
        }
        S::CutMidstream => (events::cut(vec![half], choice), Ending::Broken, length),
        S::HangMidstream => (vec![half, Step::Silence], Ending::Broken, length),
        S::Garbage => (vec![Step::Send(events::garbage(choice))], Ending::Broken, None),
        S::HugeLine => (events::huge("{\"id\":\"sim\",\"content\":\"", "\"}", choice), Ending::Broken, None),
        S::SplitUtf8 => {
            let mut steps = events::split_characters(&reply);
            steps.insert(1, Step::Wait(std::time::Duration::from_millis(1)));
            (steps, Ending::Proper, length)
        }
        _ => (vec![Step::Send(reply.into())], Ending::Proper, length),
    }
}
