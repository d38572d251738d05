//! Every reader against mutated input: no panic, no growth beyond the input, time linear in it.
//!
//! The golden files are the seeds; they are cut, joined, doubled and blown up at random. As part of the tests each target gets a
//! fixed number of inputs from a fixed seed; `make fuzz SECONDS=60` gives each target that long, from another seed each
//! time, which it prints, so that a find can be had again (`TOLLGATE_FUZZ_SEED`). A find is written to a file and named.

#[path = "../client/gathered.rs"]
mod gathered;
mod mutate;
mod targets;

use mutate::{Mutator, seeds};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use targets::{TARGETS, Target};

/// Inputs per target in an ordinary test run.
const INPUTS: u64 = 300;

/// Computing time that an input may take: much more than a linear reader needs in a debug build, much less than a quadratic one
/// takes for the larger inputs.
fn allowed(bytes: usize) -> Duration {
    Duration::from_millis(100) + Duration::from_micros(20) * u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[expect(clippy::disallowed_methods, reason = "`make fuzz` says how long, and from where")]
fn given(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Time this thread has spent computing, so that a busy machine does not count.
fn spent() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").expect("the kernel's own account");
    Duration::from_nanos(told.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds"))
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
            let kept = std::fs::write(&file, &input).is_ok();
            finds.push(format!(
                "{}: {why} (input {inputs} of seed {seed}, kept: {kept}, {})",
                target.name,
                file.display()
            ));
        }
    }
    (inputs, finds)
}

#[test]
fn fuzz() {
    let seconds = given("TOLLGATE_FUZZ_SECONDS");
    let random = || std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_secs());
    let seed = given("TOLLGATE_FUZZ_SEED").unwrap_or_else(|| if seconds.is_some() { random() } else { 1 });
    let mut finds = Vec::new();
    for target in TARGETS {
        let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(0));
        let (inputs, found) = match seconds {
            Some(_) => run(target, seed, |_| Instant::now() < end),
            None => run(target, seed, |inputs| inputs < INPUTS),
        };
        println!("fuzz: {:<10} {inputs:>8} inputs, {} finds, seed {seed}", target.name, found.len());
        finds.extend(found);
    }
    assert!(finds.is_empty(), "{finds:#?}");
}
