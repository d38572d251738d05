//! A question about sums, as it is asked over HTTP and on the command line, and checked here for
//! both.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::SumKeyRef;
use super::folded::MOST_READ;
use super::spans::{self, SumUnit};
use crate::call::Ending;
use crate::ids::{AccountId, KeyId, PersonId};
use crate::route_health::QUARTER_MS;

/// The longest stretch of time that is added up at once: ten years and some days.
const LONGEST_MS: i64 = 3_670 * 86_400_000;
/// Zones had other offsets than quarters of an hour before.
const EARLIEST_MS: i64 = 946_684_800_000;
/// What is grouped by at once.
const MOST_BY: usize = 4;
const LONGEST_NAME: usize = 200;
/// Rows of a page, or of the largest groups.
pub(crate) const MOST_ROWS: u32 = 1_000;
const PAGE: u32 = 100;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumViewer {
    /// Of one account, and nothing of what is the operator's business.
    Customer(AccountId),
    /// The same, of the keys that one person made.
    Person(AccountId, PersonId),
    Operator,
}

/// The words of a question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SumAsk {
    /// Of operators only: of this account.
    pub account: Option<String>,
    pub from: Option<String>,
    /// Left out: now.
    pub to: Option<String>,
    /// A name such as `Asia/Kathmandu`; UTC where none is given.
    pub tz: Option<String>,
    /// What is grouped by, with commas.
    pub by: Option<String>,
    pub model: Option<String>,
    pub key: Option<String>,
    pub endpoint: Option<String>,
    pub ending: Option<String>,
    pub provider: Option<String>,
    pub upstream_model: Option<String>,
    /// The groups with the largest charge, and the rest in one.
    pub top: Option<u32>,
    pub limit: Option<u32>,
    pub after: Option<String>,
}

/// What is wrong with a question.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` is {why}")]
pub struct WrongSum {
    pub field: &'static str,
    /// What it must be.
    pub why: String,
    pub fault: SumFault,
}

/// In which way a word of a question is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumFault {
    Missing,
    /// Not for who asks.
    Unknown,
    Invalid,
}

fn wrong(field: &'static str, why: impl Into<String>) -> WrongSum {
    WrongSum { field, why: why.into(), fault: SumFault::Invalid }
}

/// One value that rows must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Id([u8; 16]),
    Text(String),
    Code(i64),
}

/// The keys that one person made.
pub(crate) type OwnKeys = HashSet<Vec<u8>>;

/// Which rows of the usage log, or sums of them, are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageFilter {
    pub(crate) account: Option<AccountId>,
    /// Of the keys that this person made.
    pub(crate) made_by: Option<PersonId>,
    /// By column, which both tables call the same.
    pub(crate) wanted: Vec<(&'static str, Wanted)>,
}

impl UsageFilter {
    /// Whether a sum of these things is wanted, for who has read it by no statement. `own` are the
    /// keys that the person made of whom it is asked; nothing is wanted of a person whose keys
    /// nobody has looked up.
    pub(crate) fn wants(&self, of: &SumKeyRef<'_>, own: Option<&OwnKeys>) -> bool {
        let has = |(column, wanted): &(&str, Wanted)| match (*column, wanted) {
            ("key_id", Wanted::Id(id)) => id == of.key,
            ("ending", Wanted::Code(code)) => *code == of.ending,
            ("model", Wanted::Text(text)) => text == of.model,
            ("endpoint", Wanted::Text(text)) => text == of.endpoint,
            ("provider", Wanted::Text(text)) => text == of.provider,
            ("upstream_model", Wanted::Text(text)) => text == of.upstream_model,
            _ => false,
        };
        let made = self.made_by.is_none() || own.is_some_and(|own| own.contains(of.key));
        made && self.account.is_none_or(|account| account.0 == *of.account) && self.wanted.iter().all(has)
    }
}

/// A column that is grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SumColumn {
    Model,
    Key,
    Endpoint,
    Ending,
    Account,
    Groups,
    Provider,
    UpstreamModel,
}

impl SumColumn {
    /// Of the sums `q` and their accounts `a`.
    pub fn sql(self) -> &'static str {
        match self {
            Self::Model => "q.model",
            Self::Key => "q.key_id",
            Self::Endpoint => "q.endpoint",
            Self::Ending => "q.ending",
            Self::Account => "q.account_id",
            Self::Groups => "a.groups",
            Self::Provider => "q.provider",
            Self::UpstreamModel => "q.upstream_model",
        }
    }

    /// The member of a row in an answer.
    pub fn member(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Key => "key_id",
            Self::Endpoint => "endpoint",
            Self::Ending => "ending",
            Self::Account => "account_id",
            Self::Groups => "groups",
            Self::Provider => "provider",
            Self::UpstreamModel => "upstream_model",
        }
    }

    /// A value of the column as people read it; numbers come as their digits.
    pub fn shown(self, raw: &[u8]) -> String {
        let text = || String::from_utf8_lossy(raw).into_owned();
        match self {
            Self::Key => KeyId::from_slice(raw).map_or_else(text, |id| id.to_string()),
            Self::Account => AccountId::from_slice(raw).map_or_else(text, |id| id.to_string()),
            Self::Ending => text().parse().map_or_else(|_| text(), |code| Ending::from_code(code).name().to_owned()),
            Self::Groups => serde_json::from_slice::<Vec<String>>(raw)
                .map_or_else(|_| text(), |groups| crate::account::in_groups(groups).join(",")),
            _ => text(),
        }
    }

    /// What a word groups by, and whether it is for operators only.
    fn named(word: &str) -> Option<(&'static [SumColumn], bool)> {
        Some(match word {
            "model" => (&[Self::Model], false),
            "key" => (&[Self::Key], false),
            "endpoint" => (&[Self::Endpoint], false),
            "ending" => (&[Self::Ending], false),
            "account" => (&[Self::Account], true),
            "group" => (&[Self::Groups], true),
            "provider" => (&[Self::Provider], true),
            "route" => (&[Self::Provider, Self::UpstreamModel], true),
            _ => return None,
        })
    }
}

/// Which of the groups are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SumCut {
    /// The largest, by what was charged.
    Top(usize),
    /// In order, after a place.
    Page { limit: usize, after: Option<SumPlace> },
}

/// A place in the order of groups: where its span begins, and of what it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct SumPlace(pub i64, pub Vec<String>);

impl SumPlace {
    pub fn text(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    fn read(text: &str) -> Option<Self> {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
    }
}

/// A question that can be answered. Times are quarters of an hour since 1970.
#[derive(Clone, Debug)]
pub struct SumQuery {
    pub(crate) filter: UsageFilter,
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) zone: TimeZone,
    pub(crate) zone_name: String,
    pub(crate) unit: Option<SumUnit>,
    /// Where the spans of time begin; one where time is not grouped by.
    pub(crate) spans: Vec<i64>,
    pub(crate) by: Vec<SumColumn>,
    /// The words it was asked with.
    pub(crate) words: Vec<String>,
    pub(crate) cut: SumCut,
    pub(crate) for_operator: bool,
    /// The most sums that are read for it.
    pub(crate) most_read: usize,
}

impl SumQuery {
    /// The same with another bound.
    #[cfg(feature = "testing")]
    pub fn reading_at_most(self, most_read: usize) -> Self {
        Self { most_read, ..self }
    }

    pub fn filter(&self) -> &UsageFilter {
        &self.filter
    }

    /// The number of the span of time that a quarter is in.
    pub(crate) fn span_of(&self, quarter: i64) -> usize {
        self.spans.partition_point(|begins| *begins <= quarter).saturating_sub(1)
    }

    /// From when to before when, in milliseconds.
    pub fn range_ms(&self) -> (i64, i64) {
        (self.from * QUARTER_MS, self.to * QUARTER_MS)
    }
}

/// What is grouped by: time, columns, and the words for both.
type AskedGroups = (Option<SumUnit>, Vec<SumColumn>, Vec<String>);

impl SumAsk {
    /// Checks a question. `now_ms` is the end of an open one, up to the end of its quarter.
    pub fn checked(&self, viewer: SumViewer, now_ms: i64) -> Result<SumQuery, WrongSum> {
        let zone_name = self.tz.as_deref().unwrap_or("UTC");
        let zone = spans::zone(zone_name)
            .ok_or_else(|| wrong("tz", "the name of a time zone, such as `UTC` or `Asia/Kathmandu`"))?;
        let from = self.from.as_deref().ok_or_else(|| WrongSum {
            fault: SumFault::Missing,
            ..wrong("from", "required: a date, a time or milliseconds since 1970; calls from then on are meant")
        })?;
        let from = quarter("from", from, &zone)?;
        let to = match &self.to {
            Some(to) => quarter("to", to, &zone)?,
            None => now_ms.div_euclid(QUARTER_MS) + 1,
        };
        if to <= from || (to - from) * QUARTER_MS > LONGEST_MS {
            return Err(wrong("to", "a time after `from`, at most ten years later"));
        }
        let (unit, by, words) = self.groups(viewer)?;
        let spans = match unit {
            Some(unit) => spans::starts(unit, &zone, from, to).ok_or_else(|| {
                let most = spans::MOST_SPANS;
                wrong("by", format!("too fine for so long a time: at most {most} times `{}`", unit.name()))
            })?,
            None => vec![from],
        };
        let for_operator = viewer == SumViewer::Operator;
        let (filter, cut) = (self.filter(viewer)?, self.cut()?);
        let (zone_name, most_read) = (zone_name.to_owned(), MOST_READ);
        Ok(SumQuery { filter, from, to, zone, zone_name, unit, spans, by, words, cut, for_operator, most_read })
    }

    fn groups(&self, viewer: SumViewer) -> Result<AskedGroups, WrongSum> {
        let (mut unit, mut by, mut words) = (None, Vec::new(), Vec::<String>::new());
        for word in self.by.iter().flat_map(|by| by.split(',')).map(str::trim) {
            let time = SumUnit::ALL.into_iter().find(|unit| unit.name() == word);
            let columns = SumColumn::named(word).filter(|(_, operators)| !operators || viewer == SumViewer::Operator);
            match (time, columns) {
                _ if words.iter().any(|known| known == word) => return Err(wrong("by", "a list without repetitions")),
                (Some(_), _) if unit.is_some() => {
                    return Err(wrong("by", "a list with one of hour, day, week, month at most"));
                }
                (Some(time), _) => unit = Some(time),
                (None, Some((columns, _))) => {
                    let new: Vec<SumColumn> = columns.iter().filter(|column| !by.contains(*column)).copied().collect();
                    by.extend(new);
                }
                (None, None) => {
                    let operators =
                        if viewer == SumViewer::Operator { ", account, group, provider, route" } else { "" };
                    let all = "a list, with commas, of hour, day, week, month, model, key, endpoint, ending";
                    return Err(wrong("by", format!("{all}{operators}")));
                }
            }
            words.push(word.to_owned());
        }
        if words.len() > MOST_BY {
            return Err(wrong("by", format!("a list of {MOST_BY} at most")));
        }
        Ok((unit, by, words))
    }

    /// Which rows are wanted, by everything but time.
    pub fn filter(&self, viewer: SumViewer) -> Result<UsageFilter, WrongSum> {
        let mut filter = UsageFilter::default();
        let of_operators =
            [("account", &self.account), ("provider", &self.provider), ("upstream_model", &self.upstream_model)];
        match viewer {
            SumViewer::Customer(account) | SumViewer::Person(account, _) => {
                if let Some((field, _)) = of_operators.iter().find(|(_, given)| given.is_some()) {
                    let why = "not a parameter of this endpoint";
                    return Err(WrongSum { fault: SumFault::Unknown, ..wrong(field, why) });
                }
                filter.account = Some(account);
            }
            SumViewer::Operator => {
                let read = |text: &String| text.parse().map_err(|_| wrong("account", "an identifier acct_…"));
                filter.account = self.account.as_ref().map(read).transpose()?;
            }
        }
        if let SumViewer::Person(_, person) = viewer {
            filter.made_by = Some(person);
        }
        if let Some(key) = &self.key {
            let id: KeyId = key.parse().map_err(|_| wrong("key", "an identifier key_…"))?;
            filter.wanted.push(("key_id", Wanted::Id(id.0)));
        }
        if let Some(ending) = &self.ending {
            let known = Ending::ALL.into_iter().find(|one| one.name() == ending);
            let all = || format!("one of {}", Ending::ALL.map(Ending::name).join(", "));
            let ending = known.ok_or_else(|| wrong("ending", all()))?;
            filter.wanted.push(("ending", Wanted::Code(ending.code().into())));
        }
        for (column, given) in [
            ("model", &self.model),
            ("endpoint", &self.endpoint),
            ("provider", &self.provider),
            ("upstream_model", &self.upstream_model),
        ] {
            let Some(text) = given else { continue };
            if text.is_empty() || text.chars().count() > LONGEST_NAME || text.contains('\0') {
                return Err(wrong(column, format!("a text of 1 to {LONGEST_NAME} characters")));
            }
            filter.wanted.push((column, Wanted::Text(text.clone())));
        }
        Ok(filter)
    }

    fn cut(&self) -> Result<SumCut, WrongSum> {
        let within = |field, number: u32| {
            let fits = (1..=MOST_ROWS).contains(&number).then_some(number as usize);
            fits.ok_or_else(|| wrong(field, format!("a number from 1 to {MOST_ROWS}")))
        };
        if let Some(top) = self.top {
            if self.after.is_some() || self.limit.is_some() {
                return Err(wrong("top", "the largest groups and the rest of them: there are no pages of it"));
            }
            return Ok(SumCut::Top(within("top", top)?));
        }
        let read =
            |text: &String| SumPlace::read(text).ok_or_else(|| wrong("after", "`next_after` of the page before"));
        let after = self.after.as_ref().map(read).transpose()?;
        Ok(SumCut::Page { limit: within("limit", self.limit.unwrap_or(PAGE))?, after })
    }
}

fn quarter(field: &'static str, text: &str, zone: &TimeZone) -> Result<i64, WrongSum> {
    let at = spans::moment(text, zone).filter(|at| (EARLIEST_MS..=253_402_300_799_999).contains(at)).ok_or_else(|| {
        wrong(field, "a date (2026-10-01), a time (2026-10-01T09:30 or with an offset) or milliseconds, from the year 2000 on")
    })?;
    if at % QUARTER_MS != 0 {
        return Err(wrong(field, "a time at a full quarter of an hour: calls are added up by quarters"));
    }
    Ok(at / QUARTER_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_790_805_600_000;

    fn asked(change: impl FnOnce(&mut SumAsk)) -> SumAsk {
        let mut ask = SumAsk { from: Some("2026-09-01".into()), ..SumAsk::default() };
        change(&mut ask);
        ask
    }

    #[test]
    fn a_question_is_checked_and_names_what_is_wrong() {
        let customer = SumViewer::Customer(AccountId([1; 16]));
        let text = |text: &str| Some(text.to_owned());
        let wrongs: Vec<(&str, SumAsk)> = vec![
            ("from", asked(|ask| ask.from = None)),
            ("from", asked(|ask| ask.from = text("1999-12-31"))),
            ("from", asked(|ask| ask.from = text("2026-09-01T00:10"))),
            ("to", asked(|ask| ask.to = text("2026-09-01"))),
            ("to", asked(|ask| ask.to = text("2036-12-01"))),
            ("tz", asked(|ask| ask.tz = text("Mars"))),
            ("by", asked(|ask| ask.by = text("colour"))),
            ("by", asked(|ask| ask.by = text("day,week"))),
            ("by", asked(|ask| ask.by = text("model,model"))),
            ("by", asked(|ask| ask.by = text("day,model,key,endpoint,ending"))),
            ("by", asked(|ask| ask.by = text(""))),
            ("by", asked(|ask| (ask.by, ask.to) = (text("hour"), text("2028-09-01")))),
            ("key", asked(|ask| ask.key = text("acct_1"))),
            ("ending", asked(|ask| ask.ending = text("lost"))),
            ("model", asked(|ask| ask.model = text(""))),
            ("top", asked(|ask| ask.top = Some(0))),
            ("top", asked(|ask| (ask.top, ask.limit) = (Some(5), Some(5)))),
            ("limit", asked(|ask| ask.limit = Some(1_001))),
            ("after", asked(|ask| ask.after = text("???"))),
        ];
        for (field, ask) in wrongs {
            for viewer in [customer, SumViewer::Operator] {
                assert_eq!(ask.checked(viewer, NOW).err().map(|wrong| wrong.field), Some(field), "{ask:?}");
            }
        }
        // What is the operator's business.
        for (field, ask) in [
            ("by", asked(|ask| ask.by = text("route"))),
            ("by", asked(|ask| ask.by = text("group"))),
            ("account", asked(|ask| ask.account = Some(AccountId([2; 16]).to_string()))),
            ("provider", asked(|ask| ask.provider = text("sim"))),
            ("upstream_model", asked(|ask| ask.upstream_model = text("m"))),
        ] {
            assert_eq!(ask.checked(customer, NOW).err().map(|wrong| wrong.field), Some(field));
            assert!(ask.checked(SumViewer::Operator, NOW).is_ok(), "{ask:?}");
        }
        let own = asked(|_| {}).checked(customer, NOW).expect("a question");
        assert_eq!(own.filter.account, Some(AccountId([1; 16])), "whatever is asked, it is of the account");
        assert_eq!(own.to, NOW / QUARTER_MS + 1, "up to the end of this quarter");
    }

    #[test]
    fn a_filter_wants_what_has_every_value_it_names() {
        let (account, key) = (AccountId([2; 16]), KeyId([3; 16]));
        let asked = asked(|ask| {
            let text = |text: &str| Some(text.to_owned());
            (ask.account, ask.key) = (Some(account.to_string()), Some(key.to_string()));
            (ask.model, ask.endpoint, ask.ending) = (text("m"), text("e"), text("refused"));
            (ask.provider, ask.upstream_model) = (text("p"), text("u"));
        });
        let filter = asked.filter(SumViewer::Operator).expect("a filter");
        let of = SumKeyRef {
            account: &account.0,
            quarter: 7,
            key: &key.0,
            model: "m",
            endpoint: "e",
            ending: Ending::Refused.code().into(),
            provider: "p",
            upstream_model: "u",
        };
        assert!(filter.wants(&of, None) && UsageFilter::default().wants(&of, None));
        // Of a person: that one's keys, and none if nobody says which.
        let own = UsageFilter { made_by: Some(PersonId([4; 16])), ..filter.clone() };
        let keys = |id: [u8; 16]| OwnKeys::from([id.to_vec()]);
        assert!(own.wants(&of, Some(&keys(key.0))) && !own.wants(&of, Some(&keys(account.0))) && !own.wants(&of, None));
        for other in [
            SumKeyRef { account: &key.0, ..of },
            SumKeyRef { key: &account.0, ..of },
            SumKeyRef { model: "e", ..of },
            SumKeyRef { endpoint: "m", ..of },
            SumKeyRef { ending: Ending::Answered.code().into(), ..of },
            SumKeyRef { provider: "u", ..of },
            SumKeyRef { upstream_model: "p", ..of },
        ] {
            assert!(!filter.wants(&other, None) && UsageFilter::default().wants(&other, None));
        }
    }

    #[test]
    fn a_place_is_read_back() {
        let place = SumPlace(7, vec!["a".to_owned(), String::new()]);
        assert_eq!(SumPlace::read(&place.text()), Some(place));
        assert_eq!(SumPlace::read("e30"), None);
    }
}
