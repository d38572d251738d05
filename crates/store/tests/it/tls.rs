//! TLS to PostgreSQL: what each `sslmode` accepts, against a real server with a certificate of our
//! own making.

use crate::common::House;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tollgate_store::testing::{PostgresServer, TestClock};
use tollgate_store::{DataLocation, Options, Store};

/// An authority, and a certificate of it for `name`: the authority's certificate, the server's, and
/// the server's key.
fn certificates(name: &str) -> (String, String, String) {
    let mut authority = CertificateParams::new(Vec::new()).expect("parameters");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(authority, key).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let server = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    let server = server.signed_by(&key, &authority).expect("a certificate");
    (authority.pem(), server.pem(), key.serialize_pem())
}

/// Opens a store and says why it could not.
async fn opens(url: &str) -> Result<(), String> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let place = DataLocation { url: url.into(), data_dir: dir.path().into() };
    match Store::open(place, Options::default(), TestClock::default().world(1)).await {
        Ok(opened) => {
            opened.store.shut().await;
            Ok(())
        }
        Err(error) => Err(error.to_string()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_mode_checks_what_it_says() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (authority, certificate, key) = certificates("127.0.0.1");
    let (stranger, ..) = certificates("127.0.0.1");
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let (ours, other) = (file("ours.pem", &authority), file("other.pem", &stranger));
    let server = PostgresServer::start_with_tls(&dir.path().join("server"), &certificate, &key).expect("a server");
    let url = server.url("postgres");
    // The same server by a name that is not in its certificate.
    let misnamed = url.replace("127.0.0.1", "localhost");
    let table = [
        (format!("{url}?sslmode=disable"), false),
        (url.clone(), true),
        (format!("{url}?sslmode=prefer"), true),
        (format!("{url}?sslmode=require"), true),
        (format!("{url}?sslmode=require&sslrootcert={other}"), false),
        (format!("{url}?sslmode=verify-ca&sslrootcert={ours}"), true),
        (format!("{misnamed}?sslmode=verify-ca&sslrootcert={ours}"), true),
        (format!("{url}?sslmode=verify-ca&sslrootcert={other}"), false),
        (format!("{url}?sslmode=verify-full&sslrootcert={ours}"), true),
        (format!("{misnamed}?sslmode=verify-full&sslrootcert={ours}"), false),
        (format!("{url}?sslmode=verify-full&sslrootcert={other}"), false),
        (format!("{url}?sslmode=verify-full"), false),
    ];
    for (url, wanted) in table {
        let opened = opens(&url).await;
        assert_eq!(opened.is_ok(), wanted, "{url}: {opened:?}");
    }
    let missing = opens(&format!("{url}?sslmode=verify-full&sslrootcert=/nowhere.pem")).await;
    assert!(missing.is_err_and(|why| why.contains("/nowhere.pem")), "the file is named");
    // And it carries calls.
    let h = House::open(&format!("{url}?sslmode=verify-full&sslrootcert={ours}")).await;
    let c = h.customer(0, 100).await;
    let call = h.held(&c, 50).await;
    h.store.close(h.ending(&c, call, 20)).await.expect("closed");
    assert_eq!(h.pots(&c).await, (0, 80, 0, 0));
    h.close().await;
}

/// A server without TLS: `prefer` does without, `require` does not.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_tls() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let server = PostgresServer::start(dir.path()).expect("a server");
    let url = server.url("postgres");
    assert_eq!(opens(&format!("{url}?sslmode=prefer")).await, Ok(()));
    assert_eq!(opens(&format!("{url}?sslmode=disable")).await, Ok(()));
    assert!(opens(&format!("{url}?sslmode=require")).await.is_err());
}
