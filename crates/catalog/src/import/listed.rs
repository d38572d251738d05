//! A model as its vendor lists it, and the page of a catalog that sells it.

use super::{Margin, inline};
use crate::{Face, Faces};
use std::fmt::Write as _;
use toml::{Table, Value};

/// What a vendor asks for a model, and what the catalog says of it beside prices and routes.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedModel {
    /// What clients send as `model`.
    pub name: String,
    /// What the provider calls it.
    pub upstream: String,
    /// The keys of the catalog beside prices and routes.
    pub facts: Table,
    /// Micro-USD, in the units of prices.
    pub list: Faces,
    /// Faces that only one source knows a price for.
    pub unverified: Vec<Face>,
    /// Where the prices can be looked at.
    pub source: String,
    /// The day on which two sources were compared, as written.
    pub verified_at: String,
    pub tiers: Vec<ListedTier>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ListedTier {
    pub name: String,
    /// The conditions, as the catalog writes them.
    pub when: Value,
    pub list: Faces,
}

/// On what terms listed models are sold.
#[derive(Clone, Debug)]
pub struct SaleTerms {
    /// Where the list comes from, as `origin` of the models.
    pub origin: String,
    /// The provider of the configuration that serves them.
    pub route: String,
    pub margin: Margin,
}

impl ListedModel {
    /// The tables of the model in a catalog; `None` when a price would be beyond what one may be.
    pub fn page(&self, terms: &SaleTerms) -> Option<String> {
        let mut page = format!("[model.{}]\norigin = {}\n", inline::text(&self.name), inline::text(&terms.origin));
        self.write_facts(&mut page);
        let _ = writeln!(page, "price = {}", inline::faces(&terms.margin.prices(&self.list)?));
        let _ = writeln!(page, "list = {}", self.list_table());
        let tiers = self.tiers.iter().map(|tier| Some((tier, terms.margin.prices(&tier.list)?)));
        write_tiers(&mut page, "price", tiers.collect::<Option<Vec<_>>>()?);
        let route = [("provider", inline::text(&terms.route)), ("upstream_model", inline::text(&self.upstream))];
        let _ = writeln!(page, "route = [{}]", inline::table(route.into_iter()));
        Some(page)
    }

    /// The tables of the model in a file that is shipped: list prices, no routes. What the file
    /// says of all its models is left out.
    pub fn shipped_page(&self, source: &str, verified_at: &str) -> String {
        let mut page = format!("[model.{}]\n", inline::text(&self.name));
        if self.upstream != self.name {
            let _ = writeln!(page, "upstream = {}", inline::text(&self.upstream));
        }
        self.write_facts(&mut page);
        let _ = writeln!(page, "list = {}", inline::faces(&self.list));
        if !self.unverified.is_empty() {
            let _ = writeln!(page, "unverified = {}", self.unverified_names());
        }
        if self.source != source {
            let _ = writeln!(page, "source = {}", inline::text(&self.source));
        }
        if self.verified_at != verified_at {
            let _ = writeln!(page, "verified_at = {}", self.verified_at);
        }
        write_tiers(&mut page, "list", self.tiers.iter().map(|tier| (tier, tier.list)).collect());
        page
    }

    fn write_facts(&self, page: &mut String) {
        for (name, value) in inline::ordered(&self.facts) {
            let _ = writeln!(page, "{} = {}", inline::key(name), inline::value(value));
        }
    }

    fn unverified_names(&self) -> String {
        let names: Vec<String> = self.unverified.iter().map(|face| inline::text(face.name())).collect();
        format!("[{}]", names.join(", "))
    }

    /// A day only where something was verified.
    fn list_table(&self) -> String {
        let mut entries = vec![("source", inline::text(&self.source))];
        let verified = self.list.iter().any(|(face, _)| !self.unverified.contains(&face));
        if verified {
            entries.push(("verified_at", self.verified_at.clone()));
        }
        entries.push(("price", inline::faces(&self.list)));
        if !self.unverified.is_empty() {
            entries.push(("unverified", self.unverified_names()));
        }
        inline::table(entries.into_iter())
    }
}

fn write_tiers(page: &mut String, key: &str, tiers: Vec<(&ListedTier, Faces)>) {
    if tiers.is_empty() {
        return;
    }
    page.push_str("tier = [\n");
    for (tier, faces) in tiers {
        let entries =
            [("name", inline::text(&tier.name)), ("when", inline::value(&tier.when)), (key, inline::faces(&faces))];
        let _ = writeln!(page, "  {},", inline::table(entries.into_iter()));
    }
    page.push_str("]\n");
}
