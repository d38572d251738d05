//! `tollgate demo`: one line says all that is needed, the key works at once, and SIGTERM leaves
//! nothing behind.

use crate::house::{chat, text};
use crate::process::{Process, children, tollgate};
use serde_json::Value;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

fn start(dir: &Path, arguments: &[&str]) -> (Process, Value) {
    let mut command = tollgate(&[&["demo", "--listen", "127.0.0.1:0", "--json"], arguments].concat());
    command.current_dir(dir).env("TMPDIR", dir.join("tmp"));
    let mut process = Process::start(command, &dir.join("demo.log"));
    let line = process.first_line();
    (process, line)
}

async fn ask(line: &Value) -> reqwest::Response {
    let url = format!("{}/v1/chat/completions", text(&line["base_url"]));
    let body = chat("tollgate-demo", "Hello!");
    let request = reqwest::Client::new().post(url).bearer_auth(text(&line["key"])).json(&body);
    request.send().await.expect("a reply")
}

async fn balance(line: &Value) -> i64 {
    let url = format!("{}/v1/balance", text(&line["base_url"]));
    let reply = reqwest::Client::new().get(url).bearer_auth(text(&line["key"])).send().await.expect("a reply");
    let balance: Value = reply.json().await.expect("JSON");
    balance["available_nano_usd"].as_i64().expect("an amount")
}

async fn stop(mut process: Process, line: &Value) {
    assert!(children(process.id()).is_empty(), "all in one process");
    process.terminate();
    let status = process.wait().await;
    assert_eq!(status.code(), Some(0), "{}", process.last_words());
    for name in ["base_url", "sim_url"] {
        let address = text(&line[name]).replace("https://", "").replace("http://", "").replace("/v1", "");
        let address: SocketAddr = address.parse().expect("an address");
        assert!(TcpStream::connect(address).is_err(), "{name} still answers");
    }
}

/// What a key gets from the operator's API.
async fn operate(line: &Value, key: &Value) -> u16 {
    let url = format!("{}/api/admin/social/cells", text(&line["dash_url"]));
    let reply = reqwest::Client::new().get(url).bearer_auth(text(key)).send().await.expect("a reply");
    reply.status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_serves_at_once_and_leaves_nothing_running() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("tmp")).expect("a folder");
    let (process, line) = start(dir.path(), &["--data", "demo"]);
    let names: Vec<&str> = line.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(names, ["admin_key", "base_url", "dash_url", "key", "manage_key", "people", "sim_url"]);
    let reply = ask(&line).await;
    assert_eq!(reply.status(), 200);
    assert!(reply.headers().contains_key("x-tollgate-charge-usd"));
    assert_eq!(operate(&line, &line["admin_key"]).await, 200);
    assert_eq!(operate(&line, &line["key"]).await, 401, "a customer does not operate");
    let left = balance(&line).await;
    assert!((99_000_000_000..100_000_000_000).contains(&left), "{left}");
    stop(process, &line).await;

    // The same folder again: the books are as they were, not funded a second time; the key is a new
    // one.
    let (process, again) = start(dir.path(), &["--data", "demo"]);
    assert_ne!(again["key"], line["key"]);
    assert_eq!((operate(&again, &again["admin_key"]).await, operate(&again, &line["admin_key"]).await), (200, 401));
    assert_eq!(balance(&again).await, left);
    assert_eq!(ask(&again).await.status(), 200);
    stop(process, &again).await;
    assert!(dir.path().join("demo/tollgate.db").exists(), "a folder that was named stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_without_a_folder_takes_its_data_away_again() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("tmp")).expect("a folder");
    let (process, line) = start(dir.path(), &[]);
    let count = || std::fs::read_dir(dir.path().join("tmp")).expect("a folder").count();
    assert_eq!(count(), 1);
    assert_eq!(ask(&line).await.status(), 200);
    stop(process, &line).await;
    assert_eq!(count(), 0, "the temporary folder is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_sells_social_data_and_operators_pause_it() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("tmp")).expect("a folder");
    let (process, line) = start(dir.path(), &["--data", "demo"]);
    let fetch = async || {
        let url = format!("{}/v1/social/zhihu/user?user_url_token=ada", text(&line["base_url"]));
        let reply = reqwest::Client::new().get(url).bearer_auth(text(&line["key"])).send().await.expect("a reply");
        reply.status().as_u16()
    };
    let becomes = async |wanted: u16| {
        for _ in 0..1_000 {
            if fetch().await == wanted {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        false
    };
    let cli = |arguments: &[&str]| -> Value {
        let config = dir.path().join("demo/tollgate.toml");
        let all = [&["--config", config.to_str().expect("text"), "--json", "social"], arguments].concat();
        let done = tollgate(&all).output().expect("it runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        serde_json::from_slice(&done.stdout).expect("JSON")
    };
    assert_eq!(fetch().await, 200);
    let paused = cli(&["pause", "zhihu", "--reason", "the source changed", "--actor", "ada"]);
    assert_eq!(paused.as_array().map(Vec::len), Some(5), "all cells of the platform");
    assert!(becomes(503).await, "the running server hears of it");
    let listed = cli(&["list", "--paused"]);
    assert_eq!((listed.as_array().map(Vec::len), &listed[0]["reason"]), (Some(5), &"the source changed".into()));
    cli(&["resume", "zhihu/user", "--reason", "mended"]);
    assert!(becomes(200).await);
    let log = cli(&["log"]);
    assert_eq!(
        (&log[0]["name"], &log[0]["paused"], &log[1]["actor"]),
        (&"social-zhihu-user".into(), &false.into(), &"ada".into())
    );
    assert_eq!(cli(&["list"]).as_array().map(Vec::len), Some(101));
    stop(process, &line).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_exports_a_list_within_pages_and_money_and_goes_on() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("tmp")).expect("a folder");
    let (process, line) = start(dir.path(), &["--data", "demo"]);
    let before = balance(&line).await;
    let export = |file: &str, options: &[&str]| -> Value {
        let url = text(&line["base_url"]);
        let fixed = ["--json", "social", "export", "douyin/comments", "aweme_id=7", "--url", &url, "--out", file];
        let mut command = tollgate(&[&fixed, options].concat());
        let done =
            command.current_dir(dir.path()).env("TOLLGATE_API_KEY", text(&line["key"])).output().expect("it runs");
        serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&done.stderr)))
    };
    let one = export("list.jsonl", &["--pages", "1"]);
    assert_eq!(
        (&one["entries"], &one["done"], &one["spent_usd"]),
        (&3.into(), &false.into(), &"0.002".into()),
        "{one}"
    );
    let poor = export("list.jsonl", &["--usd", "0.001"]);
    assert_eq!((&poor["pages"], poor["stopped"].is_string()), (&0.into(), true), "{poor}");
    let rest = export("list.jsonl", &[]);
    assert_eq!((&rest["entries"], &rest["new_entries"], &rest["done"]), (&9.into(), &6.into(), &true.into()), "{rest}");
    let written = std::fs::read_to_string(dir.path().join("list.jsonl")).expect("read");
    assert_eq!(written.lines().count(), 9);
    assert!(written.contains("7411193113223371043"), "ids as they came");
    assert_eq!(export("list.jsonl", &[])["pages"], 0, "there is nothing left to do");
    assert_eq!(export("list.csv", &[])["entries"], 9);
    let sheet = std::fs::read_to_string(dir.path().join("list.csv")).expect("read");
    assert!(sheet.starts_with("\"_id\",\"id\",\"likes\",\"text\"\r\n\"7411193113223371043\""), "{sheet}");
    assert_eq!(before - balance(&line).await, 6 * 2_000_000, "each page once for each file");
    stop(process, &line).await;
}

/// What a client gets that trusts this file and nothing else.
async fn get_trusting(authority: &str, url: &str, key: &str) -> anyhow::Result<(http::Version, u16)> {
    use rustls::pki_types::pem::PemObject as _;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(rustls::pki_types::CertificateDer::from_pem_file(authority)?)?;
    let ring = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(ring).with_safe_default_protocol_versions()?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let connector = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(config).https_only();
    let connector = connector.enable_http1().enable_http2().build();
    let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build(connector);
    let request = http::Request::get(url).header("authorization", format!("Bearer {key}"));
    let reply = client.request(request.body(http_body_util::Empty::<bytes::Bytes>::new())?).await?;
    Ok((reply.version(), reply.status().as_u16()))
}

/// The commands of a customer trust what they are told to, and nobody else.
fn talks_as_a_client(dir: &Path, line: &Value, authority: &str) {
    let run = |arguments: &[&str], trusting: Option<&str>| {
        let mut command =
            tollgate(&[&["video", "list", "--json", "--url", &text(&line["base_url"])], arguments].concat());
        command.current_dir(dir).env("TOLLGATE_API_KEY", text(&line["key"])).env_remove("SSL_CERT_FILE");
        if let Some(file) = trusting {
            command.env("SSL_CERT_FILE", file);
        }
        let output = command.output().expect("it ran");
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    for (code, said) in [run(&["--ca", authority], None), run(&[], Some(authority))] {
        assert!(code == Some(0) && said.contains("\"data\""), "{said}");
    }
    let key = format!("{}/key.pem", authority.trim_end_matches("/ca.pem"));
    for (arguments, says) in [
        (&[][..], "cannot be reached"),
        (&["--ca", "no.pem"], "--ca: no.pem cannot be read"),
        (&["--ca", &key], "has no certificate in it"),
    ] {
        let (code, said) = run(arguments, None);
        assert!(code == Some(1) && said.contains(says), "{arguments:?}: {said}");
    }
    let mut mcp = tollgate(&["mcp", "--url", &text(&line["base_url"]), "--ca", authority]);
    mcp.current_dir(dir).env("TOLLGATE_API_KEY", text(&line["key"]));
    let mut mcp = mcp.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started");
    let ask = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n";
    mcp.stdin.take().expect("a pipe").write_all(ask.as_bytes()).expect("written");
    let said = mcp.wait_with_output().expect("it ran").stdout;
    assert!(String::from_utf8_lossy(&said).contains("\"tools\":"), "{}", String::from_utf8_lossy(&said));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_makes_a_certificate_that_clients_can_trust() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("tmp")).expect("a folder");
    let mut before = None;
    for _ in 0..2 {
        let (process, line) = start(dir.path(), &["--data", "demo", "--tls"]);
        let (url, file) = (format!("{}/v1/balance", text(&line["base_url"])), text(&line["ca_file"]));
        assert!(url.starts_with("https://"), "{line}");
        let got = get_trusting(&file, &url, &text(&line["key"])).await.expect("a reply");
        assert_eq!(got, (http::Version::HTTP_2, 200));
        // By its name as well, and the plain port is none.
        let named = url.replace("127.0.0.1", "localhost");
        assert_eq!(get_trusting(&file, &named, &text(&line["key"])).await.expect("a reply").1, 200);
        talks_as_a_client(dir.path(), &line, &file);
        let plain = reqwest::get(url.replace("https://", "http://")).await.expect("a reply");
        assert_eq!(plain.status(), 400);
        stop(process, &line).await;
        // The second start serves the certificate of the first.
        let now = std::fs::read(&file).expect("read");
        assert!(before.is_none_or(|before| before == now));
        before = Some(now);
    }
    let held = std::fs::read_to_string(dir.path().join("demo.log")).expect("read");
    assert!(!held.contains("PRIVATE KEY"), "{held}");
}
