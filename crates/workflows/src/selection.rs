//! Which model a run asks: one that can do what the record's query wants, picked by its policy, and
//! the same one for the life of the run.

use crate::record::ExecutorQuery;
use tollgate_catalog::Money;

/// How one of several models is picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectionPolicy {
    /// The one whose quote is lowest; of two with the same, the first by name.
    Cheapest,
    /// The first of the record's `model_ids`.
    First,
}

impl SelectionPolicy {
    pub fn read(word: &str) -> Option<SelectionPolicy> {
        match word {
            "cheapest" => Some(SelectionPolicy::Cheapest),
            "first" => Some(SelectionPolicy::First),
            _ => None,
        }
    }
}

/// A model that is on sale to whoever asks.
#[derive(Clone, Debug)]
pub struct ModelCandidate<'m> {
    pub name: &'m str,
    pub input_modalities: &'m [String],
    pub output_modalities: &'m [String],
    pub capabilities: &'m [String],
    /// The most that this run costs with it; nothing where it cannot take the request.
    pub quote: Option<Money>,
    /// Fields of the step's request that it does not read: with any of these it would make
    /// something else than was asked for.
    pub drops: Vec<String>,
}

impl ExecutorQuery {
    /// The model, or nothing where none will do. With `model_ids` no other is thought of.
    pub fn select<'m>(&self, model_ids: &[String], candidates: &[ModelCandidate<'m>]) -> Option<&'m str> {
        let policy = SelectionPolicy::read(&self.selection_policy)?;
        let place = |name: &str| model_ids.iter().position(|id| id == name);
        let fit = self.fit(model_ids, candidates).filter(|(one, _)| one.drops.is_empty());
        let picked = match policy {
            SelectionPolicy::Cheapest => fit.min_by_key(|(one, quote)| (*quote, one.name)),
            SelectionPolicy::First => fit.min_by_key(|(one, _)| (place(one.name), one.name)),
        };
        picked.map(|(one, _)| one.name)
    }

    /// The models that would do, but for the fields that they do not read.
    pub fn unread<'c>(
        &'c self,
        model_ids: &'c [String],
        candidates: &'c [ModelCandidate<'_>],
    ) -> impl Iterator<Item = (&'c str, &'c [String])> {
        let fit = self.fit(model_ids, candidates).filter(|(one, _)| !one.drops.is_empty());
        fit.map(|(one, _)| (one.name, one.drops.as_slice()))
    }

    /// The models that can do it, each with what the run costs at most.
    fn fit<'c, 'm>(
        &'c self,
        model_ids: &'c [String],
        candidates: &'c [ModelCandidate<'m>],
    ) -> impl Iterator<Item = (&'c ModelCandidate<'m>, Money)> {
        let named = |one: &&ModelCandidate<'_>| model_ids.is_empty() || model_ids.iter().any(|id| id == one.name);
        let fit = candidates.iter().filter(named).filter(|one| self.fits(one));
        fit.filter_map(|one| Some((one, one.quote?)))
    }

    fn fits(&self, candidate: &ModelCandidate<'_>) -> bool {
        let all = |wanted: &[String], has: &[String]| wanted.iter().all(|word| has.contains(word));
        all(&self.input_modalities, candidate.input_modalities)
            && all(&self.output_modalities, candidate.output_modalities)
            && all(&self.required_capabilities, candidate.capabilities)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_model_that_fits_is_picked_by_the_policy() {
        let query = |policy: &str| ExecutorQuery {
            input_modalities: words(&["text", "image"]),
            output_modalities: words(&["video"]),
            required_capabilities: words(&["video"]),
            selection_policy: policy.to_owned(),
        };
        let (both, text, video) = (words(&["image", "text"]), words(&["text"]), words(&["video"]));
        let model = |name, input, nano: Option<i64>| ModelCandidate {
            name,
            input_modalities: input,
            output_modalities: &video,
            capabilities: &video,
            quote: nano.map(Money::from_nano),
            drops: Vec::new(),
        };
        let drops = |name, field: &str| ModelCandidate { drops: words(&[field]), ..model(name, &both, Some(2)) };
        let all = [
            model("dear", &both, Some(9)),
            model("blind", &text, Some(1)),
            model("same-b", &both, Some(5)),
            model("same-a", &both, Some(5)),
            model("refuses", &both, None),
            drops("drops", "input_reference"),
            ModelCandidate { input_modalities: &text, ..drops("blind-and-drops", "seed") },
        ];
        for (policy, ids, expected) in [
            ("cheapest", &[][..], Some("same-a")),
            ("cheapest", &["dear", "same-b"], Some("same-b")),
            ("cheapest", &["blind", "refuses"], None),
            ("first", &["refuses", "dear", "same-a"], Some("dear")),
            ("first", &["drops", "dear"], Some("dear")),
            ("cheapest", &["drops"], None),
            ("first", &["moon"], None),
            ("by the moon", &[], None),
        ] {
            assert_eq!(query(policy).select(&words(ids), &all), expected, "{policy} {ids:?}");
        }
        let query = query("cheapest");
        let unread: Vec<_> = query.unread(&[], &all).collect();
        assert_eq!(unread, [("drops", &words(&["input_reference"])[..])], "who would not do anyway is not named");
    }
}
