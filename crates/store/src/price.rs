//! From counters to money: which counter is charged under which face. The gateway charges with it and the audit
//! recomputes with it, so the two cannot differ. Also: which frozen prices the database has already.

use std::collections::HashSet;
use std::sync::RwLock;

use tollgate_catalog::{Face, Price, Quantities};

use crate::call::Counters;

impl Counters {
    /// The quantities this price charges for. Where a model is sold by the call or by the second, its tokens are
    /// information and not charged.
    pub fn quantities(&self, price: &Price) -> Quantities {
        let mut used = Quantities::NONE.with(Face::PerCall, self.calls).with(Face::VideoSecond, self.seconds);
        if price.faces.has(Face::Input) || price.faces.has(Face::Output) {
            used[Face::Input] = self.input;
            used[Face::Output] = self.output.saturating_add(self.reasoning);
            used[Face::CacheRead] = self.cache_read;
            used[Face::CacheWrite] = self.cache_write_5m;
            used[Face::CacheWrite1h] = self.cache_write_1h;
            used[Face::ImageInput] = self.image_input;
            used[Face::ImageOutput] = self.image_output;
            used[Face::AudioInput] = self.audio_input;
            used[Face::AudioOutput] = self.audio_output;
        }
        used
    }

    /// In the order of the database columns.
    pub(crate) fn columns(&self) -> [i64; 12] {
        [
            self.input,
            self.cache_read,
            self.cache_write_5m,
            self.cache_write_1h,
            self.image_input,
            self.audio_input,
            self.output,
            self.reasoning,
            self.image_output,
            self.audio_output,
            self.calls,
            self.seconds,
        ]
        .map(|n| i64::try_from(n).unwrap_or(i64::MAX))
    }

    pub(crate) fn from_columns(c: [i64; 12]) -> Self {
        let c = c.map(|n| n.max(0).unsigned_abs());
        Self {
            input: c[0],
            cache_read: c[1],
            cache_write_5m: c[2],
            cache_write_1h: c[3],
            image_input: c[4],
            audio_input: c[5],
            output: c[6],
            reasoning: c[7],
            image_output: c[8],
            audio_output: c[9],
            calls: c[10],
            seconds: c[11],
        }
    }
}

/// Prices known to be in the database, so that each is written once and journalled only until then.
#[derive(Default)]
pub(crate) struct KnownPrices(RwLock<HashSet<[u8; 16]>>);

impl KnownPrices {
    pub fn has(&self, id: &[u8; 16]) -> bool {
        self.0.read().unwrap_or_else(|e| e.into_inner()).contains(id)
    }

    pub fn add(&self, ids: impl IntoIterator<Item = [u8; 16]>) {
        self.0.write().unwrap_or_else(|e| e.into_inner()).extend(ids);
    }
}
