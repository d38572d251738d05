//! The page of the documentation that lists every cell with its parameters, written from the table
//! (`docs/social-cells.md`; a test holds it to the table). For customers: what an answer costs the
//! operator is not on it.

use std::fmt::Write as _;

use super::{Cell, Param, Social};

const HEAD: &str = "# Cells of social data

Written from [`catalog/social`](../catalog/social) by `cargo run -p tollgate-catalog --example social_page > docs/social-cells.md`; do not edit
it by hand. [social.md](social.md) explains how cells are called, what is charged and what can go wrong. A gateway may sell
other cells at other prices: `GET /api/social/catalog` says what this one does.

A parameter that is required and has a default may be left out. Lengths are in characters.
";

impl Social {
    /// All cells, as Markdown.
    pub fn page(&self) -> String {
        let mut page = String::from(HEAD);
        for platform in self.platforms() {
            let aliases: Vec<String> = platform.aliases.iter().map(|alias| format!("`{alias}`")).collect();
            let also = if aliases.is_empty() { String::new() } else { format!(", also {}", aliases.join(", ")) };
            let _ = write!(page, "\n## {}\n\n{} `{}`{also}\n", platform.name_en, platform.name_zh, platform.key);
            for cell in &platform.cells {
                cell.write(&mut page);
            }
        }
        page
    }
}

impl Cell {
    fn write(&self, page: &mut String) {
        let price = self.price().map(|price| price.to_string()).unwrap_or_default();
        let _ = write!(page, "\n### {}: {}\n\n", self.platform, self.capability.name());
        let _ = write!(page, "`GET {}`, {price} USD, usage log `{}`", self.path(), self.model.name);
        page.push_str(if self.paging.is_some() { ", pages with `next`.\n" } else { ".\n" });
        for group in self.groups() {
            let names: Vec<String> = group.iter().map(|name| format!("`{name}`")).collect();
            let _ = writeln!(page, "At least one of {} is required.", names.join(", "));
        }
        if self.params.is_empty() {
            page.push_str("\nNo parameters.\n");
            return;
        }
        page.push_str("\n| parameter | type | required | default | limits | meaning |\n|---|---|---|---|---|---|\n");
        for param in &self.params {
            let default = param.default.as_ref().map(|value| format!("`{value}`")).unwrap_or_default();
            let required = if param.required { "yes" } else { "" };
            let (kind, limits, meaning) = (param.kind.name(), param.limits(), param.en.replace('|', "\\|"));
            let _ = writeln!(page, "| `{}` | {kind} | {required} | {default} | {limits} | {meaning} |", param.name);
        }
    }
}

impl Param {
    fn limits(&self) -> String {
        let choices = self.choices();
        if !choices.is_empty() {
            let choices: Vec<String> = choices.iter().map(|value| format!("`{value}`")).collect();
            return choices.join(" ");
        }
        match (self.kind.name(), self.min, self.max) {
            ("string", ..) if self.min_length > 1 => format!("{} to {}", self.min_length, self.max_length),
            ("string", ..) => format!("at most {}", self.max_length),
            (_, Some(min), Some(max)) => format!("{min} to {max}"),
            (_, Some(min), None) => format!("from {min}"),
            (_, None, Some(max)) => format!("up to {max}"),
            (_, None, None) => String::new(),
        }
    }
}
