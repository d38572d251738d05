//! How much a Claude model is asked to think.

use crate::hub::{Ask, Carry, Effort, Part, Role, ToolChoice};
use tollgate_wire::Problem;

/// Smallest budget there is.
const LEAST_BUDGET: u64 = 1_024;
/// Room for the answer beside a budget that had to be cut.
const ROOM: u64 = 1_024;

/// What is written about thinking.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Thinking {
    pub adaptive: bool,
    pub budget: Option<u64>,
    pub effort: Option<&'static str>,
    pub shown: Option<bool>,
    pub max_tokens: u64,
}

impl Thinking {
    pub fn is_on(&self) -> bool {
        self.adaptive || self.budget.is_some()
    }

    pub fn of(ask: &Ask<'_>, carry: &mut Carry<'_>) -> Result<Thinking, Problem> {
        let asked = &ask.reasoning;
        let max_tokens = ask.max_output.unwrap_or(carry.target.default_max_output);
        let mut thinking = Thinking { max_tokens, ..Thinking::default() };
        if !asked.is_on() {
            carry.drop_display(asked.shown == Some(true))?;
            carry.drop_if("reasoning.summary", asked.summary.is_some())?;
            return Ok(thinking);
        }
        if unsigned_tool_turn(ask) {
            // Anthropic wants the signed thoughts of the turn it goes on with; without them it
            // refuses to think.
            carry.drop("reasoning")?;
            return Ok(thinking);
        }
        thinking.shown = asked.shown.or(asked.summary.as_ref().map(|_| true));
        if carry.target.adaptive_thinking {
            thinking.adaptive = true;
            let effort = asked.effort.or(asked.budget.map(|budget| Effort::of_budget(budget, ask.max_output)));
            thinking.effort = effort.map(Effort::anthropic);
            return Ok(thinking);
        }
        let budget = match (asked.budget, asked.effort) {
            (Some(budget), _) => budget,
            (None, Some(effort)) => effort.budget(Some(max_tokens)),
            (None, None) => Effort::Medium.budget(Some(max_tokens)),
        };
        // The limit is what the client pays for at most, thoughts included: the budget goes by it,
        // never the other way round.
        thinking.budget = fitting(budget, max_tokens);
        let less = asked.budget.is_some_and(|asked| thinking.budget.is_some_and(|budget| budget < asked));
        carry.drop_if("reasoning", thinking.budget.is_none() || less)?;
        if thinking.budget.is_none() {
            thinking.shown = None;
        }
        Ok(thinking)
    }
}

/// As much of a budget as the limit of the output leaves; nothing where it leaves too little to
/// think at all.
fn fitting(budget: u64, max_tokens: u64) -> Option<u64> {
    let budget = budget.max(LEAST_BUDGET);
    let cut = || max_tokens.saturating_sub(ROOM).max(LEAST_BUDGET);
    (max_tokens > LEAST_BUDGET).then(|| if budget < max_tokens { budget } else { cut() })
}

/// The model is in the middle of a tool turn in which some answer does not begin with a thought it
/// signed.
fn unsigned_tool_turn(ask: &Ask<'_>) -> bool {
    let result = |part: &Part<'_>| matches!(part, Part::Result { .. });
    let spoke = ask.turns.iter().rposition(|turn| turn.role == Role::User && !turn.parts.iter().any(result));
    let mut answers = ask.turns.iter().skip(spoke.map_or(0, |at| at + 1)).filter(|turn| turn.role == Role::Assistant);
    ask.turns.last().is_some_and(|turn| turn.parts.iter().any(result))
        && answers.any(|turn| !matches!(turn.parts.first(), Some(Part::Thought { .. })))
}

/// A forced tool and thinking exclude each other; thinking wins and the model may choose.
pub(super) fn choice_beside<'c, 'a>(
    choice: Option<&'c ToolChoice<'a>>,
    thinking: bool,
    carry: &mut Carry<'_>,
) -> Result<Option<&'c ToolChoice<'a>>, Problem> {
    match choice {
        Some(ToolChoice::Required | ToolChoice::Named(_)) if thinking => {
            carry.drop("tool_choice")?;
            Ok(Some(&ToolChoice::Auto))
        }
        other => Ok(other),
    }
}
