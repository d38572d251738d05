//! The answer to a question about sums: groups in order, a page or the largest of them, and what
//! they come to in all.

use serde_json::{Map, Value, json};
use tollgate_catalog::Money;

use super::ask::{SumCut, SumPlace, SumQuery};
use super::{
    COST, COST_UNKNOWN, DURATION, ESTIMATED, FIRST_BYTE, FIRST_BYTES, REQUESTS, SumGroup, UsageSum, WRITE_OFF, spans,
};
use crate::call::counters::{Counter, Side};
use crate::route_health::QUARTER_MS;

impl SumQuery {
    /// The answer, of all groups there are.
    pub(crate) fn report(&self, mut groups: Vec<SumGroup>) -> Value {
        // What was taken away again leaves a sum of nothing.
        groups.retain(|group| group.sum != UsageSum::default());
        let mut totals = UsageSum::default();
        groups.iter().for_each(|group| totals.add(&group.sum));
        let place = |group: &SumGroup| SumPlace(self.begins(group.span), group.of.clone());
        groups.sort_by(|a, b| (a.span, &a.of).cmp(&(b.span, &b.of)));
        let (mut rest, mut next) = (None, None);
        match &self.cut {
            SumCut::Top(most) => {
                groups.sort_by_key(|group| std::cmp::Reverse((group.sum.charge(), group.sum.requests())));
                let others = groups.split_off((*most).min(groups.len()));
                let mut sum = UsageSum::default();
                others.iter().for_each(|group| sum.add(&group.sum));
                rest = (!others.is_empty()).then_some(sum);
            }
            SumCut::Page { limit, after } => {
                if let Some(after) = after {
                    groups.retain(|group| place(group) > *after);
                }
                if groups.len() > *limit {
                    groups.truncate(*limit);
                    next = groups.last().map(|group| place(group).text());
                }
            }
        }
        let (from_ms, to_ms) = self.range_ms();
        json!({
            "object": "usage_sums",
            "from_ms": from_ms,
            "to_ms": to_ms,
            "tz": self.zone_name,
            "by": self.words,
            "data": groups.iter().map(|group| self.row(group)).collect::<Vec<_>>(),
            "rest": rest.map(|sum| Value::Object(self.shown(&sum))),
            "totals": self.shown(&totals),
            "has_more": next.is_some(),
            "next_after": next,
        })
    }

    fn begins(&self, span: usize) -> i64 {
        self.spans.get(span).copied().unwrap_or(self.from)
    }

    fn row(&self, group: &SumGroup) -> Value {
        let mut row = Map::new();
        if let Some(unit) = self.unit {
            let begins = self.begins(group.span);
            let ends = self.spans.get(group.span + 1).copied().unwrap_or(self.to);
            row.insert(unit.name().to_owned(), spans::label(unit, &self.zone, begins).into());
            row.insert("from_ms".to_owned(), (begins * QUARTER_MS).into());
            row.insert("to_ms".to_owned(), (ends * QUARTER_MS).into());
        }
        for (column, of) in self.by.iter().zip(&group.of) {
            row.insert(column.member().to_owned(), of.as_str().into());
        }
        row.extend(self.shown(&group.sum));
        Value::Object(row)
    }

    fn shown(&self, sum: &UsageSum) -> Map<String, Value> {
        let side = |side| {
            let counters = Counter::ALL.into_iter().filter(|counter| counter.side() == side);
            counters.fold(0i64, |all, counter| all.saturating_add(sum.counter(counter)))
        };
        let mean = |all: i64, of: i64| (of > 0).then(|| all / of);
        let usd = |nano: i64| Money::from_nano(nano).to_string();
        let net = sum.charge().saturating_sub(sum.refunded());
        let usage: Map<String, Value> =
            Counter::ALL.into_iter().map(|counter| (counter.name().to_owned(), sum.counter(counter).into())).collect();
        let mut shown = json!({
            "requests": sum.requests(),
            "estimated": sum.0[ESTIMATED],
            "input_tokens": side(Side::Input),
            "output_tokens": side(Side::Output),
            "usage": usage,
            "charge_nano_usd": sum.charge(),
            "charge_usd": usd(sum.charge()),
            "refunded_nano_usd": sum.refunded(),
            "net_nano_usd": net,
            "net_usd": usd(net),
            "write_off_nano_usd": sum.0[WRITE_OFF],
            "mean_duration_ms": mean(sum.0[DURATION], sum.0[REQUESTS]),
            "mean_first_byte_ms": mean(sum.0[FIRST_BYTE], sum.0[FIRST_BYTES]),
        });
        if self.for_operator {
            let cost = sum.0[COST];
            shown["cost_nano_usd"] = cost.into();
            shown["cost_unknown"] = sum.0[COST_UNKNOWN].into();
            // Where the cost of some is not known, neither is what is left of all.
            let known = sum.0[COST_UNKNOWN] == 0;
            shown["margin_nano_usd"] = known.then(|| net.saturating_sub(cost)).into();
        }
        match shown {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sums::{SumAsk, SumViewer};

    fn query(change: impl FnOnce(&mut SumAsk)) -> SumQuery {
        let mut ask = SumAsk {
            from: Some("2026-09-01".into()),
            to: Some("2026-09-03".into()),
            by: Some("day,model".into()),
            ..SumAsk::default()
        };
        change(&mut ask);
        ask.checked(SumViewer::Operator, 0).expect("a question")
    }

    fn group(span: usize, model: &str, charge: i64) -> SumGroup {
        let mut sum = UsageSum::default();
        sum.0[REQUESTS] = i64::from(charge != 0);
        sum.0[crate::sums::CHARGE] = charge;
        sum.0[COST_UNKNOWN] = i64::from(charge == 7);
        SumGroup { span, of: vec![model.to_owned()], sum }
    }

    fn groups() -> Vec<SumGroup> {
        vec![group(1, "a", 5), group(0, "b", 7), group(0, "a", 1), group(0, "c", 0)]
    }

    fn models(report: &Value) -> Vec<String> {
        let rows = report["data"].as_array().expect("rows");
        rows.iter()
            .map(|row| format!("{} {}", row["day"].as_str().unwrap_or(""), row["model"].as_str().unwrap_or("")))
            .collect()
    }

    #[test]
    fn pages_follow_each_other_and_totals_are_of_all() {
        let first = query(|ask| ask.limit = Some(2)).report(groups());
        assert_eq!(models(&first), ["2026-09-01 a", "2026-09-01 b"], "in order, without sums of nothing");
        assert_eq!((&first["totals"]["charge_nano_usd"], &first["has_more"]), (&json!(13), &json!(true)));
        let after = first["next_after"].as_str().map(str::to_owned);
        let second = query(|ask| (ask.limit, ask.after) = (Some(2), after)).report(groups());
        assert_eq!(models(&second), ["2026-09-02 a"]);
        assert_eq!((&second["totals"]["charge_nano_usd"], &second["next_after"]), (&json!(13), &Value::Null));
    }

    #[test]
    fn the_largest_and_the_rest_are_all() {
        let report = query(|ask| ask.top = Some(1)).report(groups());
        assert_eq!(models(&report), ["2026-09-01 b"]);
        assert_eq!((&report["rest"]["charge_nano_usd"], &report["rest"]["requests"]), (&json!(6), &json!(2)));
        let all = query(|ask| ask.top = Some(3)).report(groups());
        assert_eq!((models(&all).len(), &all["rest"]), (3, &Value::Null));
    }

    #[test]
    fn a_margin_is_known_where_every_cost_is() {
        let report = query(|_| {}).report(groups());
        let margins: Vec<&Value> =
            report["data"].as_array().expect("rows").iter().map(|row| &row["margin_nano_usd"]).collect();
        assert_eq!(margins, [&json!(1), &Value::Null, &json!(5)]);
        let ask = SumAsk { from: Some("2026-09-01".into()), to: Some("2026-09-02".into()), ..SumAsk::default() };
        let own = ask.checked(SumViewer::Customer(crate::AccountId([1; 16])), 0).expect("a question").report(groups());
        assert!(own["totals"].get("cost_nano_usd").is_none() && own["totals"].get("margin_nano_usd").is_none());
    }
}
