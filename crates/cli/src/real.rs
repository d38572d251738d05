//! The real clock, randomness, environment and runtime: the only place that touches them.

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tollgate_gateway::machine::Machine;
use tollgate_gateway::settings::ConfigSource;
use tollgate_gateway::who::operator;
use tollgate_gateway::world::World;

/// Milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "this is where the clock enters")]
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[expect(clippy::disallowed_methods, reason = "this is where randomness enters")]
#[expect(clippy::expect_used, reason = "without randomness no key or id may be made")]
pub fn fill(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the system gives random bytes");
}

/// A wall clock that is set is noticed so late at most.
const WALL_LASTS: Duration = Duration::from_millis(50);

pub fn world() -> World {
    World::new(now_ms, fill).on(machine()).looking_every(WALL_LASTS)
}

/// More descriptors than this nobody needs.
const DESCRIPTORS: u64 = 1 << 20;

/// What this machine allows. Of file descriptors as many are taken as the system grants: the lower
/// limit is for programs that cannot count beyond it.
fn machine() -> Machine {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.unwrap_or(DESCRIPTORS).min(DESCRIPTORS);
    let mut has = limit.current;
    if has.is_some_and(|has| has < wanted)
        && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum }).is_ok()
    {
        has = Some(wanted);
    }
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Machine { descriptors: has.map(number), memory: memory().map(number) }
}

/// The memory of the machine, or of the container if that has less.
fn memory() -> Option<u64> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let machine = read("/proc/meminfo").lines().find_map(|line| {
        let kib: u64 = line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib << 10)
    });
    let container = read("/sys/fs/cgroup/memory.max").trim().parse().ok();
    [machine, container].into_iter().flatten().min()
}

/// Whatever this process makes is for its owner alone, unless it is said otherwise: databases,
/// exports, copies of videos.
pub fn keep_files_private() {
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
}

/// The secret of a key.
pub fn new_secret() -> String {
    operator::new_secret(operator::KEY_PREFIX, fill)
}

/// The name of a credit that the operator gave none. It is stored in the books, and must not look
/// like a key.
pub fn new_reference() -> String {
    let mut random = [0; 12];
    fill(&mut random);
    random.iter().fold(String::from("cli-"), |text, byte| text + &format!("{byte:02x}"))
}

/// The secret of an admin key.
pub fn new_admin_secret() -> String {
    operator::new_secret(operator::PREFIX, fill)
}

#[expect(clippy::disallowed_methods, reason = "this is where the environment enters, once")]
pub fn source(config: &Path) -> ConfigSource {
    let environment: BTreeMap<String, String> = std::env::vars().collect();
    ConfigSource { file: config.to_owned(), environment: Arc::new(environment) }
}

/// One core needs no scheduler that shares work between threads, and pays for it with every call.
pub fn runtime() -> tokio::runtime::Runtime {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut builder = match cores {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    #[expect(clippy::expect_used, reason = "nothing can run without it")]
    builder.enable_all().build().expect("a runtime")
}

/// A line that somebody types, or `None` where nobody sits at a terminal.
pub fn typed(question: &str) -> Option<String> {
    use std::io::{BufRead as _, IsTerminal as _, Write as _};
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return None;
    }
    let mut err = std::io::stderr().lock();
    write!(err, "{question}").and_then(|()| err.flush()).ok()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).ok()?;
    Some(line.trim().to_owned())
}

/// How wide the terminal is, if there is one; `COLUMNS` says it for those who read through a pager.
#[expect(clippy::disallowed_methods, reason = "this is where the environment enters")]
pub fn width() -> Option<usize> {
    let named = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    named
        .or_else(|| rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| size.ws_col.into()))
        .filter(|columns| *columns > 0)
}

/// The key of a customer who uses the command line.
#[expect(clippy::disallowed_methods, reason = "this is where the environment enters")]
pub fn api_key() -> String {
    std::env::var("TOLLGATE_API_KEY").unwrap_or_default()
}

/// JSON lines on standard error; `TOLLGATE_LOG=debug` shows more.
#[expect(clippy::disallowed_methods, reason = "this is where the environment enters")]
pub fn logs() {
    let filter = std::env::var("TOLLGATE_LOG").unwrap_or_else(|_| "info,tokio_postgres=warn".to_owned());
    let filter = tracing_subscriber::EnvFilter::try_new(filter).unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt().json().flatten_event(true).with_env_filter(filter).with_writer(std::io::stderr).init();
}
