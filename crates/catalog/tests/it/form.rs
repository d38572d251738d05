//! The form reader by itself, as the gateway uses it for its configuration.

use std::net::SocketAddr;
use std::time::Duration;

use super::lines;
use tollgate_catalog::form::{Form, Mistakes, Override, parse_duration, parse_size};

fn over(path: &[&str], value: &str, origin: &str) -> Override {
    Override {
        path: path.iter().map(ToString::to_string).collect(),
        value: value.to_owned(),
        origin: origin.to_owned(),
    }
}

#[test]
fn every_kind_of_value_is_read() {
    let text = r#"
name = "gate"
[server]
listen = "127.0.0.1:8080"
grace = "1m30s"
body = "1MiB"
raw = 512
workers = 4
strict = true
admins = ["10.0.0.1", "10.0.0.2"]
mode = "quick"
[provider.sim]
url = "http://sim"
[provider.other]
url = "http://other"
[[hook]]
to = "a"
[[hook]]
to = "b"
"#;
    let mistakes = Mistakes::default();
    let mut form = Form::parse("tollgate.toml", text, &mistakes);
    assert_eq!(form.text("name"), "gate");
    let mut server = form.table("server");
    assert_eq!(server.parsed::<SocketAddr>("listen").map(|a| a.port()), Some(8080));
    assert_eq!(server.duration("grace"), Duration::from_secs(90));
    assert_eq!(server.duration_or("idle", Duration::from_secs(5)), Duration::from_secs(5));
    assert_eq!(server.size("body"), 1 << 20);
    assert_eq!(server.size("raw"), 512);
    assert_eq!(server.int("workers", 1..=64_usize), 4);
    assert_eq!(server.int_or("retries", 2, 0..=10_u32), 2);
    assert!(server.flag("strict"));
    assert!(!server.flag_or("loose", false));
    assert_eq!(server.texts("admins"), ["10.0.0.1", "10.0.0.2"]);
    assert_eq!(server.choice("mode", &[("slow", 1), ("quick", 2)]), Some(2));
    server.finish();
    let providers = form.named("provider");
    let names: Vec<&str> = providers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["sim", "other"], "in the order of the file");
    for (_, mut provider) in providers {
        provider.text("url");
        provider.finish();
    }
    let hooks: Vec<String> = form.tables("hook").into_iter().map(|mut hook| hook.text("to")).collect();
    assert_eq!(hooks, ["a", "b"]);
    let mut absent = form.table("limits");
    assert_eq!(absent.int_or("calls", 100, 1..=1000_u64), 100);
    absent.finish();
    form.finish();
    assert_eq!(mistakes.result(()), Ok(()));
}

#[test]
fn all_mistakes_come_at_once_with_file_line_and_field() {
    let text = r#"
[server]
listen = "nowhere"
grace = 30
body = "1 fortnight"
workers = 400
strict = "yes"
mode = "quik"
lissten = 1
"#;
    let mistakes = Mistakes::default();
    let mut form = Form::parse("tollgate.toml", text, &mistakes);
    let mut server = form.table("server");
    server.parsed::<SocketAddr>("listen");
    server.duration("grace");
    server.size("body");
    server.int("workers", 1..=64_u8);
    server.flag("strict");
    server.choice("mode", &[("slow", 1), ("quick", 2)]);
    server.text("name");
    server.finish();
    form.finish();
    assert_eq!(
        lines(&mistakes.into_list()),
        r#"tollgate.toml:2: server.name: is missing: a text is needed
tollgate.toml:3: server.listen: "nowhere" cannot be used: invalid socket address syntax
tollgate.toml:4: server.grace: 30 needs a unit: "30s" for seconds, "30ms" for milliseconds
tollgate.toml:5: server.body: "1 fortnight" is not a size such as "1MiB", "64KB" or "512"
tollgate.toml:6: server.workers: must be a whole number from 1 to 64, not 400
tollgate.toml:7: server.strict: must be true or false, not a text
tollgate.toml:8: server.mode: "quik" is not one of slow, quick; did you mean "quick"?
tollgate.toml:9: server.lissten: is not a known key; did you mean "listen"?"#
    );
}

#[test]
fn the_environment_overrides_the_file_and_is_named_in_mistakes() {
    let text = "[server]\nlisten = '127.0.0.1:1'\nworkers = 2\n[provider.my-sim]\nurl = 'http://a'\n";
    let overrides = [
        over(&["SERVER", "LISTEN"], "127.0.0.1:2", "TOLLGATE__SERVER__LISTEN"),
        over(&["server", "workers"], "many", "TOLLGATE__SERVER__WORKERS"),
        over(&["server", "admins"], "a, b", "TOLLGATE__SERVER__ADMINS"),
        over(&["server", "strict"], "true", "TOLLGATE__SERVER__STRICT"),
        over(&["PROVIDER", "MY_SIM", "URL"], "http://b", "TOLLGATE__PROVIDER__MY_SIM__URL"),
        over(&["server", "wrokers"], "3", "TOLLGATE__SERVER__WROKERS"),
        over(&["limits", "calls"], "1_000", "TOLLGATE__LIMITS__CALLS"),
        over(&["server", "workers", "x"], "3", "TOLLGATE__SERVER__WORKERS__X"),
    ];
    let mistakes = Mistakes::default();
    let mut form = Form::parse_with("tollgate.toml", text, &overrides, &mistakes);
    let mut server = form.table("server");
    assert_eq!(server.parsed::<SocketAddr>("listen").map(|a| a.port()), Some(2));
    server.int("workers", 1..=64_u8);
    assert_eq!(server.texts("admins"), ["a", "b"]);
    assert!(server.flag("strict"));
    server.finish();
    let mut limits = form.table("limits");
    assert_eq!(limits.int("calls", 0..=5_000_u64), 1_000);
    limits.finish();
    for (name, mut provider) in form.named("provider") {
        assert_eq!((name.as_str(), provider.text("url").as_str()), ("my-sim", "http://b"));
        provider.finish();
    }
    form.finish();
    assert_eq!(
        lines(&mistakes.into_list()),
        r#"TOLLGATE__SERVER__WORKERS: server.workers: must be a whole number from 1 to 64, not "many"
TOLLGATE__SERVER__WORKERS__X: server.workers: is not a table
TOLLGATE__SERVER__WROKERS: server.wrokers: is not a known key; did you mean "workers"?"#
    );
}

#[test]
fn broken_syntax_is_reported_alone() {
    let mistakes = Mistakes::default();
    let mut form = Form::parse("tollgate.toml", "a = 1\nb = = 2\n[c\n", &mistakes);
    form.text("needed");
    form.finish();
    let list = mistakes.into_list();
    assert!(list.iter().all(|mistake| mistake.reason.starts_with("is not TOML")), "{}", lines(&list));
    assert_eq!(list.first().map(|mistake| mistake.line), Some(2));
    assert!(list.iter().any(|mistake| mistake.line == 3));
}

#[test]
fn durations_and_sizes() {
    for (text, ms) in [("250ms", 250), ("30s", 30_000), ("1h30m", 5_400_000), ("2d", 172_800_000), ("0", 0), ("0s", 0)]
    {
        assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
    }
    for text in ["", "s", "30", "-1s", "1.5s", "1w", "30 s", "99999999999999999d"] {
        assert!(parse_duration(text).is_err(), "{text}");
    }
    for (text, bytes) in
        [("0", 0), ("512", 512), ("512B", 512), ("64KB", 64_000), ("1MiB", 1 << 20), ("2 GiB", 2 << 30)]
    {
        assert_eq!(parse_size(text), Ok(bytes), "{text}");
    }
    for text in ["", "MiB", "1.5MiB", "-1", "1mib", "99999999999GiB"] {
        assert!(parse_size(text).is_err(), "{text}");
    }
}
