//! The ladder of reasoning efforts, and the way between efforts and token budgets.

/// How hard to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

/// Smallest budget Anthropic takes, and the largest anybody gives.
const LEAST: u64 = 1_024;
const MOST: u64 = 128_000;
/// What a budget is measured against when the request sets no limit.
const USUAL_OUTPUT: u64 = 32_000;

impl Effort {
    const LADDER: [(Effort, &'static str, u64); 7] = [
        (Effort::None, "none", 0),
        (Effort::Minimal, "minimal", 10),
        (Effort::Low, "low", 20),
        (Effort::Medium, "medium", 50),
        (Effort::High, "high", 80),
        (Effort::Xhigh, "xhigh", 95),
        (Effort::Max, "max", 95),
    ];

    pub fn of(word: &str) -> Option<Effort> {
        Self::LADDER.iter().find(|(_, name, _)| word.eq_ignore_ascii_case(name)).map(|(effort, ..)| *effort)
    }

    pub fn word(self) -> &'static str {
        Self::LADDER[self as usize].1
    }

    /// A budget of so many per cent of the output.
    pub fn budget(self, max_output: Option<u64>) -> u64 {
        let share = Self::LADDER[self as usize].2;
        (max_output.unwrap_or(USUAL_OUTPUT).min(MOST * 2) * share / 100).clamp(LEAST, MOST)
    }

    /// The effort nearest to a budget, from its share of the output.
    pub fn of_budget(budget: u64, max_output: Option<u64>) -> Effort {
        if budget == 0 {
            return Effort::None;
        }
        let share = budget.saturating_mul(100) / max_output.unwrap_or(USUAL_OUTPUT).max(1);
        match share {
            0..=14 => Effort::Minimal,
            15..=34 => Effort::Low,
            35..=64 => Effort::Medium,
            _ => Effort::High,
        }
    }

    /// The nearest of the efforts a model knows, the higher one of two that are as near.
    pub fn nearest(self, known: &[Effort]) -> Effort {
        let far = |one: &Effort| ((*one as i8).abs_diff(self as i8), std::cmp::Reverse(*one));
        known.iter().copied().min_by_key(far).unwrap_or(self)
    }

    /// Anthropic's word: it has neither none nor minimal.
    pub fn anthropic(self) -> &'static str {
        self.max(Effort::Low).word()
    }

    /// Gemini's level: it ends at HIGH and has no off.
    pub fn gemini_level(self) -> &'static str {
        match self {
            Effort::None | Effort::Minimal => "MINIMAL",
            Effort::Low => "LOW",
            Effort::Medium => "MEDIUM",
            Effort::High | Effort::Xhigh | Effort::Max => "HIGH",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_and_efforts_agree() {
        for effort in [Effort::Low, Effort::Medium, Effort::High] {
            assert_eq!(Effort::of_budget(effort.budget(Some(20_000)), Some(20_000)), effort);
            assert_eq!(Effort::of(effort.word()), Some(effort));
        }
        assert_eq!(Effort::Minimal.budget(Some(2_000)), LEAST);
        assert_eq!(Effort::Max.budget(Some(u64::MAX)), MOST);
        assert_eq!(Effort::of_budget(0, None), Effort::None);
        let known = [Effort::Low, Effort::High];
        assert_eq!(
            [Effort::None, Effort::Medium, Effort::Max].map(|e| e.nearest(&known)),
            [Effort::Low, Effort::High, Effort::High]
        );
        assert_eq!(Effort::Minimal.nearest(&[]), Effort::Minimal);
        assert_eq!(Effort::of("HIGH"), Some(Effort::High));
        assert_eq!((Effort::Minimal.anthropic(), Effort::Max.gemini_level()), ("low", "HIGH"));
    }
}
