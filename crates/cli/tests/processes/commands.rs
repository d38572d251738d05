//! The operator's commands, each tried while the server runs (through its socket) and while it does
//! not.

use crate::house::{Gate, House, Plan, chat, text};
use crate::postgres::Server;
use crate::process::{Process, tollgate};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn sqlite() {
    with_and_without_a_server(Plan::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres() {
    let server = Server::find();
    let database = server.database("commands").await;
    with_and_without_a_server(Plan { database: &database, ..Plan::default() }).await;
}

async fn with_and_without_a_server(plan: Plan<'_>) {
    let mut house = House::new(plan).await;
    assert_eq!(house.ask(0, &chat("plain", "[[sim:tokens=5]] hello")).await.status(), 200);
    house.quiet().await;
    everything(&house, "up").await;
    // After kill -9 its socket is still there, and nobody answers it.
    house.gates[0].kill();
    everything(&house, "down").await;
    house.gates[0].start().await;
    house.verified().await;
}

async fn everything(house: &House, state: &str) {
    let gate = &house.gates[0];
    let account = accounts(gate, state).await;
    keys(gate, &account).await;
    usage(house).await;
    let report = house.verified().await;
    assert!(report["accounts"].as_u64() > Some(1) && report["usage_rows"] == 1, "{report}");
    assert!(said(gate, &["ledger", "verify"]).await.contains("every number adds up"));
    errors(house).await;
}

async fn accounts(gate: &Gate, state: &str) -> String {
    let made = gate.cli(&["account", "create", state, "--group", "default", "--trial", "1.5"]).await;
    let id = text(&made["account_id"]);
    assert_eq!((&made["name"], &made["groups"]), (&json!(state), &json!(["default"])));
    assert_eq!((&made["trial_available_nano_usd"], &made["topped_up"]), (&json!(1_500_000_000), &json!(false)));
    let payment = format!("payment-{state}");
    for _ in 0..2 {
        let topped_up = gate.cli(&["account", "topup", &id, "12.345678901", "--id", &payment]).await;
        assert_eq!(
            (&topped_up["paid_available_nano_usd"], &topped_up["topped_up"]),
            (&json!(12_345_678_901_i64), &json!(true))
        );
    }
    let again = gate.run(&["account", "topup", &id, "12.345678901", "--id", &payment]).await;
    assert!(String::from_utf8_lossy(&again.stderr).contains("applied before"));
    let trial = gate.cli(&["account", "topup", &id, "0.5", "--trial"]).await;
    assert_eq!(trial["trial_available_nano_usd"], json!(2_000_000_000));
    let shown = gate.cli(&["account", "show", &id]).await;
    assert_eq!((&shown["account"], &shown["keys"]), (&trial, &json!([])));
    corrections(gate, &id).await;
    let trial = gate.cli(&["account", "show", &id]).await["account"].clone();
    let list = gate.cli(&["account", "list"]).await;
    assert!(list.as_array().expect("a list").contains(&trial), "{list}");
    let table = said(gate, &["account", "list"]).await;
    let row = table.lines().find(|line| line.starts_with(&id)).unwrap_or_else(|| panic!("{table}"));
    assert!(row.contains("12.345678901") && row.contains(state), "{row}");
    id
}

/// Limits, adjustments and credit that expires; in the end the balance is as it was.
async fn corrections(gate: &Gate, id: &str) {
    let limited = gate.cli(&["account", "update", id, "--limit-day", "5", "--limit-month", "100"]).await;
    assert_eq!(
        limited["limits"],
        json!({ "total_nano_usd": null, "day_nano_usd": 5_000_000_000_i64, "month_nano_usd": 100_000_000_000_i64 })
    );
    let limited = gate.cli(&["account", "update", id, "--limit-day", "none"]).await;
    assert_eq!(limited["limits"]["day_nano_usd"], Value::Null);
    let name = format!("gift-{id}");
    let gift = ["--trial", "--expires", "30d", "--id", &name, "--actor", "Ada"];
    let given = gate.cli(&[&["account", "topup", id, "0.25"], &gift[..]].concat()).await;
    assert_eq!(given["trial_available_nano_usd"], json!(2_250_000_000_i64));
    let expiring = gate.cli(&["account", "show", id]).await["expiring"].clone();
    assert_eq!((&expiring[0]["credit"], &expiring[0]["available_nano_usd"]), (&json!(name), &json!(250_000_000)));
    assert!(said(gate, &["account", "show", id]).await.contains("trial credit that expires"));
    let take = ["--trial", "--reason", "a gift by mistake", "--actor", "Bob"];
    let taken = gate.cli(&[&["account", "adjust", id, "-0.25"], &take[..]].concat()).await;
    assert_eq!(taken["trial_available_nano_usd"], json!(2_000_000_000));
    assert_eq!(gate.cli(&["account", "show", id]).await["expiring"], json!([]), "what expires first is taken first");
    for usd in ["0.5", "-0.5"] {
        gate.cli(&["account", "adjust", id, usd, "--reason", "forth and back"]).await;
    }
    let history = gate.cli(&["account", "history", id, "--limit", "4"]).await;
    let shown: Vec<_> = history
        .as_array()
        .expect("a list")
        .iter()
        .map(|e| {
            let part = |name: &str| e[name].as_str().unwrap_or_default().to_owned();
            (
                part("kind"),
                e["trial_nano_usd"].as_i64().unwrap_or(0) + e["paid_nano_usd"].as_i64().unwrap_or(0),
                part("actor"),
                part("reason"),
            )
        })
        .collect();
    let line =
        |kind: &str, nano, actor: &str, reason: &str| (kind.to_owned(), nano, actor.to_owned(), reason.to_owned());
    assert_eq!(
        shown,
        [
            line("adjust", -500_000_000, "command line", "forth and back"),
            line("adjust", 500_000_000, "command line", "forth and back"),
            line("adjust", -250_000_000, "Bob", "a gift by mistake"),
            line("trial_credit", 250_000_000, "Ada", "top-up by the operator"),
        ]
    );
    let table = said(gate, &["account", "history", id]).await;
    assert!(table.contains("a gift by mistake") && table.contains("-0.25") && table.contains("gift"), "{table}");
}

async fn keys(gate: &Gate, account: &str) {
    let limits = [
        "--model",
        "plain",
        "--model",
        "by-the-call",
        "--ip",
        "10.0.0.0/8",
        "--cap",
        "2",
        "--limit-day",
        "0.5",
        "--expires",
        "12h",
    ];
    let made = gate.cli(&[&["key", "create", account, "--name", "app"], &limits[..]].concat()).await;
    let (id, secret) = (text(&made["key_id"]), text(&made["secret"]));
    assert!(secret.starts_with("sk-") && secret.len() == 51 && secret.starts_with(&text(&made["key_prefix"])));
    assert_eq!((&made["models"], &made["cidrs"]), (&json!(["plain", "by-the-call"]), &json!(["10.0.0.0/8"])));
    let limits = json!({ "total_nano_usd": 2_000_000_000, "day_nano_usd": 500_000_000, "month_nano_usd": null });
    assert_eq!((&made["limits"], &made["revoked_at_ms"]), (&limits, &Value::Null));
    let changed = gate.cli(&["key", "update", &id, "--limit-total", "none", "--limit-month", "7.25"]).await;
    let limits = json!({ "total_nano_usd": null, "day_nano_usd": 500_000_000, "month_nano_usd": 7_250_000_000_i64 });
    assert_eq!((&changed["limits"], &changed["key_id"]), (&limits, &made["key_id"]));
    assert!(said(gate, &["key", "update", &id]).await.contains("7.25"), "nothing to change shows what there is");
    let (created, expires) = (made["created_at_ms"].as_i64(), made["expires_at_ms"].as_i64());
    assert!((expires.expect("a time") - created.expect("a time") - 12 * 3_600_000).abs() < 60_000);
    let list = gate.cli(&["key", "list", account]).await;
    assert_eq!(
        (list[0]["key_id"].as_str(), list[0].get("secret")),
        (Some(id.as_str()), None),
        "the secret is shown once"
    );
    assert!(!list.to_string().contains(&secret));
    let table = said(gate, &["key", "list", account]).await;
    assert!(table.contains("plain,by-the-call") && table.contains("10.0.0.0/8"), "{table}");
    let revoked = gate.cli(&["key", "revoke", &id]).await;
    assert!(revoked["revoked_at_ms"].is_i64());
    assert_eq!(gate.cli(&["key", "revoke", &id]).await, revoked, "revoking twice keeps the first time");
    let plain = gate.run(&["key", "create", account]).await;
    let shown = String::from_utf8_lossy(&plain.stdout);
    assert!(shown.starts_with("sk-") && shown.trim_end().len() == 51, "nothing else, for `KEY=$(…)`: {shown}");
    assert!(String::from_utf8_lossy(&plain.stderr).contains("shown once"));
}

async fn usage(house: &House) {
    let gate = &house.gates[0];
    let rows = gate.cli(&["usage", "--account", &house.account]).await;
    assert_eq!(rows.as_array().map(Vec::len), Some(1), "{rows}");
    // Two words in, five out: 2 x 1,000 + 5 x 2,000 nano-USD, the marker being the first word.
    assert_eq!((&rows[0]["charge_nano_usd"], &rows[0]["ending"]), (&json!(12_000), &json!("answered")));
    let call = text(&rows[0]["call_id"]);
    let one = gate.cli(&["usage", "--account", &house.account, "--call", &call]).await;
    assert_eq!((&one["call_id"], one["price"].is_object()), (&json!(call), true), "{one}");
    assert_eq!(gate.cli(&["usage", "--before", &call]).await, json!([]));
    // Refunded in the first round, and no more in the second.
    let back = gate.cli(&["refund", &call, "--reason", "it was bad", "--actor", "Ada"]).await;
    assert_eq!(
        (&back["account_id"], &back["paid_available_nano_usd"]),
        (&json!(house.account), &json!(10_000_000_000_i64)),
        "{back}"
    );
    let again = gate.run(&["refund", &call]).await;
    assert!(again.status.success() && String::from_utf8_lossy(&again.stderr).contains("refunded before"));
    assert!(!gate.run(&["refund", &call, "--amount", "0.000001"]).await.status.success(), "once, for one amount");
    let one = gate.cli(&["usage", "--account", &house.account, "--call", &call]).await;
    assert_eq!(
        (&one["charge_nano_usd"], &one["refunded_nano_usd"]),
        (&json!(12_000), &json!(12_000)),
        "the row shows both"
    );
    let history = gate.cli(&["account", "history", &house.account, "--limit", "1"]).await;
    assert_eq!((&history[0]["call_id"], &history[0]["reason"]), (&json!(call), &json!("it was bad")));
    let table = said(gate, &["usage"]).await;
    assert!(table.contains(&call) && table.contains("0.000012"), "{table}");
}

/// Whoever reads through a pipe may stop reading: that is no failure, and nothing panics.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_leaves_is_no_failure() {
    let house = House::new(Plan::default()).await;
    assert_eq!(house.ask(0, &chat("plain", "[[sim:tokens=5]] hello")).await.status(), 200);
    house.quiet().await;
    let config = house.gates[0].config.to_str().expect("UTF-8");
    for arguments in
        [&["usage"][..], &["usage", "--json"], &["account", "list"], &["ledger", "export"], &["completions", "bash"]]
    {
        let mut command = tollgate(arguments);
        command.args(["--config", config]).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut child = tokio::process::Command::from(command).kill_on_drop(true).spawn().expect("it starts");
        drop(child.stdout.take());
        let ended = child.wait_with_output().await.expect("it ends");
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success() && errors.is_empty(), "{arguments:?}: {:?} {errors}", ended.status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_refund_of_another_amount_says_what_was_refunded() {
    let house = House::new(Plan::default()).await;
    let reply = house.ask(0, &chat("plain", "[[sim:tokens=5]] hello")).await;
    let call = reply.headers()["x-request-id"].to_str().expect("text").to_owned();
    house.quiet().await;
    house.cli(&["refund", &call, "--amount", "0.000001"]).await;
    let again = house.gates[0].run(&["refund", &call, "--amount", "0.000002"]).await;
    let errors = String::from_utf8_lossy(&again.stderr);
    let said = format!("tollgate: {call} was refunded 0.000001 USD before; a call is refunded once\n");
    assert_eq!((again.status.success(), errors.as_ref()), (false, said.as_str()));
}

/// One line that names the place and the cause, each once, and no password.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_fails_says_where_and_why() {
    let house = House::new(Plan::default()).await;
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("file"), "").expect("written");
    let text = std::fs::read_to_string(&house.gates[0].config).expect("read");
    let (_, providers) = text.split_once("[provider").expect("providers");
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let address = format!("postgres://ada:pass-word@{free}/books?sslmode=disable");
    let place = free.to_string() + "/books";
    for (database, data, listen, words) in [
        (address.as_str(), "data", "127.0.0.1:0", vec![place.as_str(), "Connection refused"]),
        ("sqlite", "file/data", "127.0.0.1:0", vec!["file/data", "Not a directory"]),
        ("sqlite", "data2", "203.0.113.1:1", vec!["203.0.113.1:1", "Cannot assign requested address"]),
    ] {
        let config = dir.path().join("tollgate.toml");
        std::fs::create_dir_all(dir.path().join("catalog")).expect("a folder");
        let head = format!("database = \"{database}\"\ndata_dir = \"{data}\"\nlisten = \"{listen}\"\n");
        let providers = format!("[provider{providers}").replace("{sim}", "http://127.0.0.1:9");
        std::fs::write(&config, head + &providers).expect("written");
        let mut command = tollgate(&["serve", "--config", config.to_str().expect("UTF-8")]);
        command.env("SIM_SECRET", "secret").env("TOLLGATE_LOG", "off");
        let ended = tokio::process::Command::from(command).kill_on_drop(true).output().await.expect("it ends");
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert!(!ended.status.success() && errors.lines().count() == 1, "{errors}");
        for word in words {
            assert_eq!(errors.matches(word).count(), 1, "{word} in {errors}");
        }
        assert!(!errors.contains("pass-word"), "{errors}");
    }
}

async fn errors(house: &House) {
    let account = house.account.as_str();
    let nobody = "acct_00000000000000000000000000";
    let cases: [(&[&str], &str); 21] = [
        (&["account", "show", "bob"], "account: not an identifier of the form acct_"),
        (&["account", "show", nobody], "not found: acct_"),
        (&["account", "topup", nobody, "1"], "acct_0000"),
        (&["account", "topup", account, "1e3"], "is not a decimal amount such as 12.5"),
        (&["account", "topup", account, "0"], "is not an amount above zero"),
        (&["account", "topup", account, "0.0000000001"], "0.0000000001"),
        (&["account", "topup", account, "11", "--id", "first"], "this id was used for another credit"),
        (&["key", "create", account, "--ip", "home"], "--ip home: not an address or network such as 10.0.0.0/8"),
        (&["key", "create", account, "--expires", "soon"], "--expires soon"),
        (&["key", "create", nobody], "acct_0000"),
        (&["key", "revoke", "sk-something"], "`tollgate key list ACCOUNT` shows them"),
        (&["key", "update", "sk-something"], "`tollgate key list ACCOUNT` shows them"),
        (&["account", "adjust", account, "-1"], "--reason"),
        (&["account", "adjust", account, "-1000", "--reason", "x"], "above the available balance"),
        (&["account", "update", account, "--limit-day=-1"], "--limit-day \"-1\" is below zero"),
        (&["account", "topup", account, "1", "--expires", "1d"], "--trial"),
        (&["account", "topup", account, "1", "--trial", "--expires", "2020-01-01"], "this day has begun already"),
        (&["refund", "call_00000000000000000000000000"], "no charge for call_0000"),
        (&["usage", "--call", "call_1"], "--account"),
        (&["usage", "--limit", "0"], "0 is not in 1..=10000"),
        (&["acount", "list"], "a similar subcommand exists: 'account'"),
    ];
    for (arguments, expected) in cases {
        let output = house.gates[0].run(arguments).await;
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty(), "{arguments:?}");
        assert!(errors.contains(expected), "{arguments:?}: {errors}");
    }
}

/// What a command says to people.
async fn said(gate: &Gate, arguments: &[&str]) -> String {
    let output = gate.run(arguments).await;
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_on_the_same_data_is_refused_and_harms_nothing() {
    let house = House::new(Plan::default()).await;
    let gate = &house.gates[0];
    let mut command = tollgate(&["serve", "--config", gate.config.to_str().expect("UTF-8")]);
    command.env("SIM_SECRET", "x").env("TOLLGATE__LISTEN", "127.0.0.1:0");
    let mut second = Process::start(command, &gate.log.with_extension("second.log"));
    let status = second.wait().await;
    assert_eq!(status.code(), Some(1));
    let log = second.logged();
    assert!(log.contains("the data directory is in use by another process: ") && log.contains("data"), "{log}");
    assert_eq!(house.ask(0, &chat("plain", "hello")).await.status(), 200);
    house.verified().await;

    // The same port with data of its own: another clear message.
    let mut command = tollgate(&["serve", "--config", gate.config.to_str().expect("UTF-8")]);
    command.env("SIM_SECRET", "x").env("TOLLGATE__DATA_DIR", "other");
    let mut third = Process::start(command, &gate.log.with_extension("third.log"));
    assert_eq!(third.wait().await.code(), Some(1));
    assert!(third.logged().contains(&format!("cannot listen on 127.0.0.1:{}", gate.port)), "{}", third.logged());
}
