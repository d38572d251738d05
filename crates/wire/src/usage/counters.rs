//! From the overlapping numbers of a report to disjoint counters.
//!
//! The totals rule: a detail that claims more than its total has left is cut to what is left, in
//! the fixed order written here, and what no detail claims is plain input or output. So the
//! counters always add up to the totals and none can be negative.

use super::names::{Slot, UsageShape};
use super::{Usage, UsageReport};

pub(super) fn counters(shape: UsageShape, report: &UsageReport) -> Option<Usage> {
    let usage = match shape {
        UsageShape::Chat | UsageShape::Responses => inclusive(report)?,
        UsageShape::Anthropic => anthropic(report)?,
        UsageShape::Gemini => gemini(report)?,
    };
    (usage.input_total() > 0 || usage.output_total() > 0).then_some(usage)
}

/// Moves up to `wanted` out of `rest`.
fn take(rest: &mut u64, wanted: Option<u64>) -> u64 {
    let taken = wanted.unwrap_or(0).min(*rest);
    *rest -= taken;
    taken
}

/// Long and short-lived part of `written`; a part that is not reported counts as short.
fn lives(written: u64, long: Option<u64>) -> (u64, u64) {
    let long = long.unwrap_or(0).min(written);
    (long, written - long)
}

/// What was written to a cache: the total, or the sum of the parts when only those are reported.
fn written(report: &UsageReport, total: Slot, short: Slot, long: Slot) -> Option<u64> {
    report.get(total).or_else(|| match (report.get(short), report.get(long)) {
        (None, None) => None,
        (short, long) => Some(short.unwrap_or(0) + long.unwrap_or(0)),
    })
}

/// Sound or pictures that were not read from a cache.
fn fresh(report: &UsageReport, all: Slot, cached: Slot) -> Option<u64> {
    report.get(all).map(|all| all.saturating_sub(report.get(cached).unwrap_or(0)))
}

/// Splits totals that include everything.
fn split(report: &UsageReport, input: u64, output: u64) -> Usage {
    let mut rest = input;
    let cache_read = take(&mut rest, report.get(Slot::CacheRead));
    let writes = take(&mut rest, written(report, Slot::CacheWrite, Slot::WriteShort, Slot::WriteLong));
    let (cache_write_1h, cache_write_5m) = lives(writes, report.get(Slot::WriteLong));
    let audio_input = take(&mut rest, fresh(report, Slot::AudioIn, Slot::CachedAudio));
    let image_input = take(&mut rest, fresh(report, Slot::ImageIn, Slot::CachedImage));
    let input = rest;
    let mut rest = output;
    let reasoning = take(&mut rest, report.get(Slot::Reasoning));
    let audio_output = take(&mut rest, report.get(Slot::AudioOut));
    let image_output = take(&mut rest, report.get(Slot::ImageOut));
    Usage {
        input,
        cache_read,
        cache_write_5m,
        cache_write_1h,
        image_input,
        audio_input,
        output: rest,
        reasoning,
        image_output,
        audio_output,
    }
}

/// Chat and Responses: everything is inside input and output.
///
/// One of the two is derived from the total when only that is there. Some providers leave reasoning
/// out of the completion and only count it in the total; the total then says so and the reasoning
/// is added.
fn inclusive(report: &UsageReport) -> Option<Usage> {
    let (input, output) = match (report.get(Slot::Input), report.get(Slot::Output), report.get(Slot::Total)) {
        (Some(input), Some(output), total) => {
            let reasoning = report.get(Slot::Reasoning).unwrap_or(0);
            let outside = reasoning > 0 && total == Some(input + output + reasoning);
            (input, if outside { output + reasoning } else { output })
        }
        (Some(input), None, Some(total)) => (input, total.checked_sub(input)?),
        (None, Some(output), Some(total)) => (total.checked_sub(output)?, output),
        _ => return None,
    };
    Some(split(report, input, output))
}

/// Anthropic: the three kinds of input stand side by side, thinking is inside the output, and
/// iterations that the totals leave out (compaction, advice of another model) are added.
///
/// A stream that broke after its first event has reported its input only: output absent is output
/// zero.
fn anthropic(report: &UsageReport) -> Option<Usage> {
    let input = report.get(Slot::Input)?;
    let mut output = report.get(Slot::Output).unwrap_or(0);
    let reasoning = take(&mut output, report.get(Slot::Reasoning));
    let main = written(report, Slot::CacheWrite, Slot::WriteShort, Slot::WriteLong).unwrap_or(0);
    let beside = written(report, Slot::BesideWrite, Slot::BesideShort, Slot::BesideLong).unwrap_or(0);
    let (main_long, main_short) = lives(main, report.get(Slot::WriteLong));
    let (beside_long, beside_short) = lives(beside, report.get(Slot::BesideLong));
    let more = |slot| report.get(slot).unwrap_or(0);
    Some(Usage {
        input: input + more(Slot::BesideInput),
        cache_read: more(Slot::CacheRead) + more(Slot::BesideRead),
        cache_write_5m: main_short + beside_short,
        cache_write_1h: main_long + beside_long,
        output: output + more(Slot::BesideOutput),
        reasoning,
        ..Usage::default()
    })
}

/// Gemini: cached tokens are inside the prompt, thoughts and tool results stand beside it, and a
/// number that is zero is left out. Tool results are input. A total that leaves no room for
/// thoughts beside the candidates says that they are inside.
fn gemini(report: &UsageReport) -> Option<Usage> {
    let tool = report.get(Slot::ToolIn).unwrap_or(0);
    let thoughts = report.get(Slot::Reasoning).unwrap_or(0);
    let (prompt, output) = match (report.get(Slot::Input), report.get(Slot::Output), report.get(Slot::Total)) {
        (Some(prompt), Some(candidates), total) => {
            let inside = thoughts > 0 && thoughts <= candidates && total == Some(prompt + tool + candidates);
            (prompt, if inside { candidates } else { candidates + thoughts })
        }
        (Some(prompt), None, Some(total)) => (prompt, total.saturating_sub(prompt + tool).max(thoughts)),
        (Some(prompt), None, None) => (prompt, thoughts),
        (None, candidates, Some(total)) => {
            let output = candidates.unwrap_or(0) + thoughts;
            (total.checked_sub(output + tool)?, output)
        }
        (None, _, None) => return None,
    };
    // Thoughts come first out of the output, and tool results are never cached.
    let mut usage = split(report, prompt, output);
    usage.input += tool;
    Some(usage)
}
