//! Every reader against mutated input: no panic, no growth beyond the input, time linear in it.
//!
//! The golden files are the seeds; they are cut, joined, doubled and blown up at random. As part of
//! the tests each target gets a fixed number of inputs from a fixed seed; `make fuzz SECONDS=60`
//! gives each target that long, from another seed each time, which it prints, so that a find can be
//! had again (`TOLLGATE_FUZZ_SEED`). A find is written to a file and named.

mod mutate;
mod targets;

use mutate::{Mutator, seeds};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use targets::{TARGETS, Target};

/// Inputs per target in an ordinary test run.
const INPUTS: u64 = 300;

/// Computing time that an input may take at all, whatever it is like: a stop for what does not end.
/// That time is linear in the input is seen by [`steep`].
fn allowed(bytes: usize) -> Duration {
    Duration::from_millis(100) + Duration::from_micros(20) * u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Growing inputs per target in an ordinary test run.
const GROWING: u64 = 8;
/// Bytes of the shortest of them; the longest has four times as many.
const SHORT: usize = 32 << 10;
/// Twice the input may take this many times the time: linear work takes twice, quadratic four
/// times.
const MORE: f64 = 3.0;
/// Below this nothing is said: the caches would be measured.
const SHORTEST: Duration = Duration::from_millis(2);
/// An input is played again and again until this much was spent: many kernels count a thread's time
/// in ticks of some milliseconds.
const GLANCE: Duration = Duration::from_millis(40);
/// So much before a growth is believed, as often as [`LOOKS`] says.
const LOOK: Duration = Duration::from_millis(400);
const LOOKS: usize = 3;

/// What one play takes, as the mean of as many as spend `enough` together.
fn mean(target: &Target, input: &[u8], enough: Duration) -> Result<Duration, String> {
    let start = spent();
    for plays in 1_u32.. {
        let outcome = catch_unwind(AssertUnwindSafe(|| (target.play)(input, &[input.len() / 2])));
        outcome.unwrap_or_else(|_| Err("panicked".to_owned()))?;
        let took = spent() - start;
        if took >= enough {
            return Ok(took / plays);
        }
    }
    Err("is never done".to_owned())
}

/// The times for once, twice and four times as much, if they grow faster than that: from one to two
/// and from two to four, for a limit that is passed only by the longer input would show once.
fn steep(target: &Target, growing: &mutate::Growing, enough: Duration) -> Result<Option<[Duration; 3]>, String> {
    let time = |times: usize| mean(target, &growing.to(times * SHORT), enough);
    let steeper = |less: Duration, more: Duration| more.as_secs_f64() > MORE * less.as_secs_f64();
    let (one, two) = (time(1)?, time(2)?);
    if two < SHORTEST || !steeper(one, two) {
        return Ok(None);
    }
    let four = time(4)?;
    Ok(steeper(two, four).then_some([one, two, four]))
}

/// What is wrong with a target that is given more and more; measured again, longer, before it is
/// believed.
fn grows(target: &Target, growing: &mutate::Growing) -> Option<String> {
    let mut seen = steep(target, growing, GLANCE);
    for _ in 0..LOOKS {
        if !matches!(seen, Ok(Some(_))) {
            break;
        }
        seen = steep(target, growing, LOOK);
    }
    match seen {
        Ok(seen) => seen.map(|took| format!("takes {took:?} for once, twice and four times as much")),
        Err(why) => Some(why),
    }
}

/// Targets whose inputs are made to grow.
fn run_growing(target: &Target, seed: u64, until: impl Fn(u64) -> bool) -> (u64, Vec<String>) {
    let seeds = seeds();
    let mut mutator = Mutator::new(seed);
    let (mut inputs, mut finds) = (0, Vec::new());
    while until(inputs) && finds.len() < 5 {
        inputs += 1;
        let Some(growing) = mutator.growing(&seeds, target.takes) else { continue };
        if let Some(why) = grows(target, &growing) {
            let file = std::env::temp_dir().join(format!("tollgate-fuzz-{}-grows-{seed}-{inputs}", target.name));
            let saved = std::fs::write(&file, growing.to(SHORT)).is_ok();
            finds.push(format!("{}: {why} (saved: {saved}, {})", target.name, file.display()));
        }
    }
    (inputs, finds)
}

#[expect(clippy::disallowed_methods, reason = "`make fuzz` says how long, and from where")]
fn given(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Time this thread has spent computing, so that a busy machine does not count.
fn spent() -> Duration {
    let account = std::fs::read_to_string("/proc/thread-self/schedstat").expect("the kernel's own account");
    Duration::from_nanos(account.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds"))
}

fn run(target: &Target, seed: u64, until: impl Fn(u64) -> bool) -> (u64, Vec<String>) {
    let seeds = seeds();
    let mut mutator = Mutator::new(seed);
    let (mut inputs, mut finds) = (0, Vec::new());
    while until(inputs) && finds.len() < 5 {
        inputs += 1;
        let input = mutator.input(&seeds, target.takes);
        let splits = mutator.splits(input.len());
        let start = spent();
        let outcome = catch_unwind(AssertUnwindSafe(|| (target.play)(&input, &splits)));
        let took = spent() - start;
        let find = match outcome {
            Err(_) => Some("panicked".to_owned()),
            Ok(Err(why)) => Some(why),
            Ok(Ok(())) if took > allowed(input.len()) => Some(format!("took {took:?} for {} bytes", input.len())),
            Ok(Ok(())) => None,
        };
        if let Some(why) = find {
            let file = std::env::temp_dir().join(format!("tollgate-fuzz-{}-{seed}-{inputs}", target.name));
            let saved = std::fs::write(&file, &input).is_ok();
            finds.push(format!(
                "{}: {why} (input {inputs} of seed {seed}, saved: {saved}, {})",
                target.name,
                file.display()
            ));
        }
    }
    (inputs, finds)
}

/// Time is linear in the input. The measure itself is tested first: it must see what is not.
#[test]
fn time_is_linear() {
    fn quadratic(input: &[u8], _: &[usize]) -> Result<(), String> {
        let pairs = input.iter().step_by(32).map(|one| input.iter().step_by(32).filter(|two| *two > one).count());
        if pairs.sum::<usize>() == usize::MAX { Err(String::new()) } else { Ok(()) }
    }
    let bad = Target { name: "quadratic", takes: mutate::Takes::Requests, play: quadratic };
    // A machine that is busy in bursts may hide it now and then.
    let seen = (1..=10).any(|seed| !run_growing(&bad, seed, |inputs| inputs < 4).1.is_empty());
    assert!(seen, "quadratic work is not seen");
    over_targets("grows", GROWING, |target, seed, go| run_growing(target, seed, go));
}

#[test]
fn fuzz() {
    over_targets("fuzz", INPUTS, |target, seed, go| run(target, seed, go));
}

/// Every target for the seconds that were asked for, or with so many inputs.
fn over_targets(what: &str, most: u64, play: impl Fn(&Target, u64, &dyn Fn(u64) -> bool) -> (u64, Vec<String>)) {
    let seconds = given("TOLLGATE_FUZZ_SECONDS");
    let random = || std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_secs());
    let seed = given("TOLLGATE_FUZZ_SEED").unwrap_or_else(|| if seconds.is_some() { random() } else { 1 });
    let mut finds = Vec::new();
    for target in TARGETS {
        let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(0));
        let go = |inputs| if seconds.is_some() { Instant::now() < end } else { inputs < most };
        let (inputs, found) = play(target, seed, &go);
        println!("{what}: {:<10} {inputs:>8} inputs, {} finds, seed {seed}", target.name, found.len());
        finds.extend(found);
    }
    assert!(finds.is_empty(), "{finds:#?}");
}
