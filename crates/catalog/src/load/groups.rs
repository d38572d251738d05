//! `[group.NAME]` tables and `auto_groups`.

use std::collections::BTreeMap;

use crate::form::{Form, Mistakes, did_you_mean};
use crate::{Group, LineInFile};

pub(super) fn read(forms: &mut [Form<'_>], mistakes: &Mistakes) -> (BTreeMap<String, Group>, Vec<String>) {
    let mut groups: BTreeMap<String, (Group, LineInFile)> = BTreeMap::new();
    let mut auto: Option<(Vec<String>, LineInFile, String)> = None;
    for form in forms {
        for (name, mut table) in form.named("group") {
            if let Some((_, first)) = groups.get(&name) {
                table.mistake_here(format!("is already defined in {first}"));
                table.ignore_rest();
                continue;
            }
            let group = Group {
                multiplier: table.fraction("multiplier"),
                description: table.text_or("description", ""),
                public: table.flag_or("public", name == Group::DEFAULT),
            };
            if group.multiplier.numerator() == 0 {
                table.mistake("multiplier", "must be more than zero");
            }
            groups.insert(name, (group, table.place()));
            table.finish();
        }
        let place = form.place_of("auto_groups");
        if let Some(order) = form.opt_texts("auto_groups") {
            match &auto {
                Some((_, first, _)) => {
                    form.mistake("auto_groups", format!("is already given in {first}"));
                }
                None => auto = Some((order, place, form.field("auto_groups"))),
            }
        }
    }
    let mut groups: BTreeMap<String, Group> = groups.into_iter().map(|(name, (group, _))| (name, group)).collect();
    groups.entry(Group::DEFAULT.to_owned()).or_insert_with(|| Group::plain(Group::DEFAULT));
    let mut order = Vec::new();
    if let Some((given, place, field)) = auto {
        for name in given {
            if !groups.contains_key(&name) {
                let hint = did_you_mean(&name, groups.keys().map(String::as_str));
                mistakes.add(&place, &field, format!("no group is called {name:?}{hint}"));
            } else if !order.contains(&name) {
                order.push(name);
            }
        }
    }
    // What is not named comes after: special groups before the one of everybody, or their prices
    // would never apply.
    let (default, special): (Vec<_>, Vec<_>) = groups.keys().cloned().partition(|name| name == Group::DEFAULT);
    for name in special.into_iter().chain(default) {
        if !order.contains(&name) {
            order.push(name);
        }
    }
    (groups, order)
}
