//! Social data: one cell per platform and capability, read from the catalog like models. Everything
//! about a cell is written there once; checks, the public catalog, the API description,
//! documentation and tests read it.

mod answer;
mod cell;
mod check;
mod page;
mod paging;
mod param;
mod record;
mod shipped;

pub use answer::{AnswerRule, Evidence, Status};
pub use cell::{Capability, Cell, Method, SocialRoute};
pub use check::{BadParameter, Checked, Wrong};
pub use paging::{More, Paging, PagingStep};
pub use param::{Param, ParamKind, ParamValue};
pub use shipped::SHIPPED;

use std::collections::HashMap;
use std::sync::Arc;

/// All cells on sale.
#[derive(Clone, Debug, Default)]
pub struct Social {
    pub(crate) platforms: Vec<Platform>,
    /// Platform by key or alias.
    by_key: HashMap<String, usize>,
}

/// A platform and its cells, in the order of [`Capability::ALL`].
#[derive(Clone, Debug)]
pub struct Platform {
    pub key: String,
    pub order: u32,
    pub name_en: String,
    pub name_zh: String,
    /// Other spellings of the key that addresses may use.
    pub aliases: Vec<String>,
    pub cells: Vec<Arc<Cell>>,
}

impl Social {
    pub(crate) fn new(mut platforms: Vec<Platform>) -> Social {
        platforms.sort_by(|a, b| (a.order, &a.key).cmp(&(b.order, &b.key)));
        let names = |(at, platform): (usize, &Platform)| {
            platform.aliases.iter().chain([&platform.key]).map(|name| (name.clone(), at)).collect::<Vec<_>>()
        };
        let by_key = platforms.iter().enumerate().flat_map(names).collect();
        Social { platforms, by_key }
    }

    /// The cell of an address, `None` where that pair is not on sale.
    pub fn cell(&self, platform: &str, capability: &str) -> Option<&Arc<Cell>> {
        let platform = &self.platforms[*self.by_key.get(platform)?];
        platform.cells.iter().find(|cell| cell.capability.name() == capability)
    }

    /// The cell of a usage-log name.
    pub fn by_model(&self, model: &str) -> Option<&Arc<Cell>> {
        self.cells().find(|cell| cell.model.name == model)
    }

    /// The cells an operator means: `douyin/search`, `social-douyin-search`, or `douyin` for all of
    /// it.
    pub fn named(&self, name: &str) -> Vec<Arc<Cell>> {
        if let Some(cell) = self.by_model(name) {
            return vec![cell.clone()];
        }
        match name.split_once('/') {
            Some((platform, capability)) => self.cell(platform, capability).cloned().into_iter().collect(),
            None => self.by_key.get(name).map(|at| self.platforms[*at].cells.clone()).unwrap_or_default(),
        }
    }

    /// Every cell, platforms in their order.
    pub fn cells(&self) -> impl Iterator<Item = &Arc<Cell>> {
        self.platforms.iter().flat_map(|platform| &platform.cells)
    }

    pub fn platforms(&self) -> &[Platform] {
        &self.platforms
    }

    pub fn is_empty(&self) -> bool {
        self.platforms.is_empty()
    }
}
