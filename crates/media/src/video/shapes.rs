//! The aspect ratios providers accept, written once.

pub(crate) const RATIOS: &[&str] = &["16:9", "9:16", "1:1", "4:3", "3:4"];
pub(crate) const WIDE_RATIOS: &[&str] = &["16:9", "9:16", "1:1", "4:3", "3:4", "4:5", "5:4", "9:21", "21:9"];
pub(crate) const ADAPTIVE_RATIOS: &[&str] = &["16:9", "4:3", "1:1", "3:4", "9:16", "21:9", "adaptive"];
pub(crate) const THREE_RATIOS: &[&str] = &["16:9", "9:16", "1:1"];
