//! Everything that is not as the standard has it adds no passkey and signs nobody in.

use super::authenticator::{
    AT, Algorithm, BE, BS, ED, ORIGIN, RP_ID, Saying, SoftPasskey, UP, UV, cbor_bytes, cbor_text, head, packed,
    rsa_cose,
};
use super::passkeys::{Pocket, at_desk, house};
use crate::engine::Engine;
use serde_json::{Value, json};

const ALL: &str = "/api/session/passkeys";
const CLIENT: &str = "credential.response.clientDataJSON";
const OBJECT: &str = "credential.response.attestationObject";
const DATA: &str = "credential.response.authenticatorData";

type Twist = Box<dyn Fn(&mut Saying)>;
/// What is wrong, how it comes to be, and the field that is named.
type Case = (&'static str, &'static str, Twist);

fn case(what: &'static str, field: &'static str, twist: impl Fn(&mut Saying) + 'static) -> Case {
    (what, field, Box::new(twist))
}

/// Wrong whether it is made or shown.
fn of_both(data: &'static str) -> Vec<Case> {
    let set = |name: &'static str, value: Value| move |said: &mut Saying| said.client[name] = value.clone();
    let raw = |text: &'static str| move |said: &mut Saying| said.client_text = Some(text.as_bytes().to_vec());
    vec![
        case("another site", CLIENT, set("origin", json!("https://evil.example"))),
        case("a site inside ours", CLIENT, set("origin", json!("https://a.gate.example.com"))),
        case("the site above ours", CLIENT, set("origin", json!("https://example.com"))),
        case("our site without TLS", CLIENT, set("origin", json!("http://gate.example.com"))),
        case("another port", CLIENT, set("origin", json!("https://gate.example.com:8443"))),
        case("our site with a slash", CLIENT, set("origin", json!(format!("{ORIGIN}/")))),
        case("an opaque origin", CLIENT, set("origin", json!("null"))),
        case("another challenge", CLIENT, set("challenge", json!(packed(&[9; 32])))),
        case("an empty challenge", CLIENT, set("challenge", json!(""))),
        case("a challenge with padding", CLIENT, |said| {
            let padded = format!("{}=", said.client["challenge"].as_str().expect("text"));
            said.client["challenge"] = json!(padded);
        }),
        case("another kind", CLIENT, set("type", json!("webauthn.other"))),
        case("a frame of another site", CLIENT, set("crossOrigin", json!(true))),
        case("a frame, by its top", CLIENT, set("topOrigin", json!("https://evil.example"))),
        case("a flag that is none", CLIENT, set("crossOrigin", json!("false"))),
        case("no origin", CLIENT, |said| {
            said.client.as_object_mut().expect("an object").remove("origin");
        }),
        case("no JSON", CLIENT, raw("{")),
        case("a list", CLIENT, |said| {
            let client = &said.client;
            let list = json!([client["type"], client["challenge"], client["origin"], false, null]);
            said.client_text = Some(list.to_string().into_bytes());
        }),
        case("an origin twice", CLIENT, |said| {
            let text = said.client.to_string();
            said.client_text = Some(text.replacen('{', "{\"origin\":\"https://evil.example\",", 1).into_bytes());
        }),
        case("JSON without an end", CLIENT, |said| said.client_text = Some(vec![b'['; 4_000])),
        case("5,000 bytes of it", CLIENT, |said| said.client["x"] = json!("x".repeat(5_000))),
        case("another domain", data, |said| said.rp_id = "evil.example".to_owned()),
        case("the domain above ours", data, |said| said.rp_id = "example.com".to_owned()),
        case("nobody there", data, |said| said.flags &= !UP),
        case("nobody verified", data, |said| said.flags &= !UV),
        case("backed up, and cannot be", data, |said| said.flags = (said.flags | BS) & !BE),
        case("bytes behind it", data, |said| said.tail = vec![0]),
        case("extensions that are missing", data, |said| said.flags |= ED),
        case("extensions that are no map", data, |said| {
            said.flags |= ED;
            said.tail = vec![0x01];
        }),
        case("extensions that nest", data, |said| {
            said.flags |= ED;
            said.tail = [[0xa1, 0x00].repeat(1_000), vec![0x00]].concat();
        }),
        case("extensions with bytes behind them", data, |said| {
            said.flags |= ED;
            said.tail = vec![0xa0, 0xa0];
        }),
    ]
}

fn of_making() -> Vec<Case> {
    let object = |bytes: Vec<u8>| move |said: &mut Saying| said.object = Some(bytes.clone());
    let cose = |bytes: Vec<u8>| move |said: &mut Saying| said.cose = bytes.clone();
    let with = |more: &'static [u8], from: usize, to: &'static [u8]| {
        move |said: &mut Saying| {
            said.cose.splice(from..from + more.len(), to.iter().copied());
        }
    };
    let mut cases = of_both(OBJECT);
    cases.extend([
        case("one that was shown", CLIENT, |said| said.client["type"] = json!("webauthn.get")),
        case("no object", OBJECT, object(Vec::new())),
        case("half an object", OBJECT, |said| {
            let whole = said.attestation();
            said.object = Some(whole[..whole.len() / 2].to_vec());
        }),
        case("an object but for a byte", OBJECT, |said| {
            let whole = said.attestation();
            said.object = Some(whole[..whole.len() - 1].to_vec());
        }),
        case("an object and a byte", OBJECT, |said| {
            said.object = Some([said.attestation(), vec![0]].concat());
        }),
        case("no map", OBJECT, object(vec![0x80])),
        case("a map without an end", OBJECT, object(vec![0xbf, 0xff])),
        case("a map of 2^32", OBJECT, object(vec![0xba, 0xff, 0xff, 0xff, 0xff])),
        case("bytes of 2^63", OBJECT, object(vec![0x5b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])),
        case("lists inside each other", OBJECT, object([vec![0x81; 10_000], vec![0x00]].concat())),
        case("20,000 bytes", OBJECT, object(cbor_bytes(&[0; 20_000]))),
        case(
            "no authData",
            OBJECT,
            object([vec![0xa2], cbor_text("fmt"), cbor_text("none"), cbor_text("attStmt"), vec![0xa0]].concat()),
        ),
        case("authData twice", OBJECT, |said| {
            let mut whole = said.attestation();
            whole[0] = 0xa4;
            whole.extend([cbor_text("authData"), cbor_bytes(&[0; 37])].concat());
            said.object = Some(whole);
        }),
        case("a statement where there is none", OBJECT, |said| {
            said.statement = [vec![0xa1], cbor_text("x"), vec![0x00]].concat();
        }),
        case("no public key", OBJECT, |said| said.flags &= !AT),
        case("half a public key", OBJECT, |said| said.cose.truncate(20)),
        case("another algorithm (ES384)", OBJECT, with(&[0x26], 4, &[0x38, 0x22])),
        case("an algorithm of another kind of key", OBJECT, with(&[0x26], 4, &[0x27])),
        case("another curve", OBJECT, with(&[0x01], 6, &[0x02])),
        case("a key with more in it", OBJECT, |said| {
            said.cose[0] = 0xa6;
            said.cose.extend([0x18, 0x63, 0x00]);
        }),
        case("a point too short", OBJECT, |said| {
            let short = cbor_bytes(&[1; 31]);
            said.cose.splice(8..8 + 34, short);
        }),
        case("a compressed point", OBJECT, |said| {
            said.cose.truncate(8 + 34 + 1);
            said.cose.push(0xf5);
        }),
        case("RSA of 1024 bits", OBJECT, cose(rsa_cose(&[0xff; 128], &[1, 0, 1]))),
        case("RSA of 8192 bits", OBJECT, cose(rsa_cose(&[0xff; 1_024], &[1, 0, 1]))),
        case("an exponent of 100 bytes", OBJECT, cose(rsa_cose(&[0xff; 256], &[1; 100]))),
        case("an identifier of 15 bytes", "credential.id", |said| said.id.truncate(15)),
        case("an identifier of 1,024 bytes", "credential.id", |said| said.id = vec![1; 1_024]),
        case("an identifier without end", "credential.id", |said| said.id = vec![1; 8_000]),
    ]);
    cases
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_made_otherwise_is_not_added() {
    for engine in Engine::both().await {
        let house = house(&engine.url).await;
        let (mut ada, who) = at_desk(&house, "ada@example.com", None).await;
        let cases = of_making();
        assert!(cases.len() > 50, "{}", cases.len());
        for (what, field, twist) in cases {
            let mut passkey = SoftPasskey::new(Algorithm::Es256);
            let mut said = passkey.create(&ada.begin("").await);
            twist(&mut said);
            let refused = ada.post(ALL, json!({ "name": "x", "credential": said.made() })).await;
            assert_eq!((refused.status, refused.code.as_str()), (400, "invalid_parameter"), "{what}: {}", refused.body);
            assert_eq!(refused.body["error"]["param"], field, "{what}: {}", refused.body);
        }
        // What the browser says around it.
        let mut passkey = SoftPasskey::new(Algorithm::Es256);
        let options = ada.begin("").await;
        let good = passkey.create(&options).made();
        let other = packed(&[3; 32]);
        for (pointer, value, field) in [
            ("/id", json!("!!!!"), "credential.id"),
            ("/id", json!(other), "credential.rawId"),
            ("/rawId", json!(other), "credential.rawId"),
            ("/type", json!("password"), "credential.type"),
            ("/response/clientDataJSON", json!("a+b/"), CLIENT),
            ("/response/attestationObject", json!("AA=="), OBJECT),
            ("/response/attestationObject", json!(null), "credential"),
            ("/response", json!([]), "credential"),
            ("/response/transports", json!("usb"), "credential"),
        ] {
            let mut bad = good.clone();
            *bad.pointer_mut(pointer).expect("a place") = value;
            let refused = ada.post(ALL, json!({ "name": "x", "credential": bad })).await;
            assert_eq!((refused.status, &refused.body["error"]["param"]), (400, &json!(field)), "{pointer}");
        }
        let both = json!({ "id": other, "rawId": other });
        let mut bad = good.clone();
        bad.as_object_mut().expect("an object").extend(both.as_object().cloned().expect("an object"));
        let refused = ada.post(ALL, json!({ "name": "x", "credential": bad })).await;
        assert_eq!(refused.body["error"]["param"], "credential.id", "not what the authenticator gave");
        for (body, field) in [
            (json!({ "name": "x", "credential": "x" }), "credential"),
            (json!({ "name": "x" }), "credential"),
            (json!({ "credential": good }), "name"),
            (json!({ "name": "x".repeat(61), "credential": good }), "name"),
            (json!({ "name": "x", "credential": good, "more": 1 }), "more"),
        ] {
            assert_eq!(ada.post(ALL, body).await.body["error"]["param"], field);
        }
        assert!(house.running().app.store.passkeys(who.id).await.expect("read").is_empty());
        let added = ada.post(ALL, json!({ "name": "x", "credential": good })).await;
        assert_eq!(added.status, 200, "the good one is: {}", added.body);
        house.quiet().await;
    }
}

/// The statement of an attestation that we did not ask for is not looked at.
#[tokio::test(flavor = "multi_thread")]
async fn an_attestation_is_taken_and_not_looked_at() {
    let house = house("sqlite").await;
    let (mut ada, _) = at_desk(&house, "ada@example.com", None).await;
    for format in ["packed", "fido-u2f", "apple", "of tomorrow"] {
        let mut passkey = SoftPasskey::new(Algorithm::Es256);
        let mut said = passkey.create(&ada.begin("").await);
        let chain = [cbor_text("x5c"), head(4, 1), cbor_bytes(&[1; 900])].concat();
        said.format = format;
        said.statement =
            [vec![0xa3], cbor_text("alg"), vec![0x26], cbor_text("sig"), cbor_bytes(&[2; 70]), chain].concat();
        // And extensions, which we did not ask for either.
        said.flags |= ED;
        said.tail = [vec![0xa1], cbor_text("credProtect"), vec![0x02]].concat();
        let added = ada.post(ALL, json!({ "name": format, "credential": said.made() })).await;
        assert_eq!(added.status, 200, "{format}: {}", added.body);
        assert_eq!(Pocket::new(&house).sign_in(&mut passkey).await.status, 200, "{format}");
    }
}

fn of_showing() -> Vec<Case> {
    let mut cases = of_both(DATA);
    cases.extend([
        case("one that was made", CLIENT, |said| said.client["type"] = json!("webauthn.create")),
        case("a public key that nobody asked for", DATA, |said| said.flags |= AT),
        case("no data", DATA, |said| said.object = Some(Vec::new())),
        case("no signature", "credential", |said| said.signature = Some(Vec::new())),
        case("a signature of nothing", "credential", |said| said.signature = Some(vec![0x30, 0x00])),
        case("a signature of 600 bytes", "credential.response.signature", |said| said.signature = Some(vec![1; 600])),
        case("nobody's", "credential", |said| said.handle = None),
        case("somebody else's", "credential", |said| said.handle = Some(vec![7; 16])),
        case("whose, and more", "credential", |said| {
            said.handle.as_mut().expect("whose").push(0);
        }),
        case("whose, without end", "credential.response.userHandle", |said| said.handle = Some(vec![7; 65])),
        case("it can be backed up, and could not", "credential", |said| said.flags |= BE),
        case("another passkey", "credential", |said| said.id = vec![5; 32]),
        case("an identifier too short", "credential.id", |said| said.id = vec![5; 15]),
        case("an identifier too long", "credential.id", |said| said.id = vec![5; 1_024]),
    ]);
    cases
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_shown_otherwise_signs_nobody_in() {
    for engine in Engine::both().await {
        let house = house(&engine.url).await;
        let (mut ada, who) = at_desk(&house, "ada@example.com", None).await;
        let mut passkey = SoftPasskey::new(Algorithm::Es256);
        assert_eq!(ada.add("phone", &mut passkey).await.status, 200);
        let cases = of_showing();
        assert!(cases.len() > 40, "{}", cases.len());
        let mut hours = 0;
        for (what, field, twist) in cases {
            // Guesses wait; an hour later that is forgotten.
            hours += 2;
            house.later(hours * 3_600_000).await;
            let mut thief = Pocket::new(&house);
            let mut said = passkey.get(&thief.begin("/sign-in").await);
            twist(&mut said);
            let mut body = said.shown(&passkey);
            if said.object.is_some() {
                body["response"]["authenticatorData"] = json!("");
            }
            let refused = thief.post(&format!("{ALL}/sign-in"), json!({ "credential": body })).await;
            assert_eq!((refused.status, refused.code.as_str()), (401, "sign_in_failed"), "{what}: {}", refused.body);
            assert_eq!(refused.body["error"]["param"], field, "{what}: {}", refused.body);
            assert!(!thief.cookies.contains_key("__Host-tollgate"), "{what}");
        }
        let stored = house.running().app.store.passkeys(who.id).await.expect("read");
        assert_eq!((stored[0].sign_count, stored[0].suspected_at), (0, None), "nothing was counted");
        // A signature of another key, of another algorithm, and of other bytes.
        for algorithm in [Algorithm::Es256, Algorithm::EdDsa, Algorithm::Rs256] {
            let other = SoftPasskey::new(algorithm);
            let mut thief = Pocket::new(&house);
            let said = passkey.get(&thief.begin("/sign-in").await);
            assert_eq!(thief.show("/sign-in", &said, &other).await.code, "sign_in_failed", "{algorithm:?}");
        }
        hours += 2;
        house.later(hours * 3_600_000).await;
        let mut thief = Pocket::new(&house);
        let said = passkey.get(&thief.begin("/sign-in").await);
        let mut body = said.shown(&passkey);
        let raised = Saying { count: said.count + 1, ..said }.shown(&passkey);
        body["response"]["authenticatorData"] = raised["response"]["authenticatorData"].clone();
        let refused = thief.post(&format!("{ALL}/sign-in"), json!({ "credential": body })).await;
        assert_eq!(refused.code, "sign_in_failed", "other bytes than were signed");
        assert_eq!(Pocket::new(&house).sign_in(&mut passkey).await.status, 200, "the good one does");
        house.quiet().await;
    }
}

/// A challenge is for what it was given for: one purpose, one session, one browser, five minutes.
#[tokio::test(flavor = "multi_thread")]
async fn a_challenge_is_for_one_purpose_of_one_session() {
    for engine in Engine::both().await {
        let house = house(&engine.url).await;
        let (mut ada, _) = at_desk(&house, "ada@example.com", None).await;
        let (mut eve, _) = at_desk(&house, "eve@example.com", None).await;
        let (mut hers, mut evil) = (SoftPasskey::new(Algorithm::EdDsa), SoftPasskey::new(Algorithm::EdDsa));
        assert_eq!(ada.add("hers", &mut hers).await.status, 200);
        assert_eq!(eve.add("evil", &mut evil).await.status, 200);
        let bad = (403, "token_invalid");
        let ceremony = "__Host-tollgate-passkey";
        let heard = |answer: &super::Answer| (answer.status, answer.code.clone());
        let is = |answer: super::Answer, (status, code): (u16, &str), what: &str| {
            assert_eq!(heard(&answer), (status, code.to_owned()), "{what}: {}", answer.body);
        };
        // No ceremony at all, and a seal that is none.
        let mut nobody = Pocket::new(&house);
        let said = hers.get(&nobody.begin("/sign-in").await);
        let cookies = nobody.cookies.clone();
        nobody.cookies.clear();
        is(nobody.show("/sign-in", &said, &hers).await, bad, "without the cookie");
        nobody.cookies = [(ceremony.to_owned(), packed(&[1; 80]))].into();
        is(nobody.show("/sign-in", &said, &hers).await, bad, "with a cookie of their own");
        nobody.cookies = cookies;
        is(nobody.show("/sign-in", &said, &hers).await, (200, ""), "with its own");
        is(nobody.show("/sign-in", &said, &hers).await, bad, "and once");
        // Of another purpose: each of the three, for each of the others.
        for (begun, ended) in [("/sign-in", "/step-up"), ("/step-up", "/sign-in")] {
            let said = hers.get(&ada.begin(begun).await);
            is(ada.show(ended, &said, &hers).await, bad, begun);
        }
        let mut new = SoftPasskey::new(Algorithm::EdDsa);
        for begun in ["/sign-in", "/step-up"] {
            let mut options = ada.begin(begun).await;
            options["publicKey"]["user"] = json!({ "id": packed(&hers.handle) });
            options["publicKey"]["rp"] = json!({ "id": RP_ID });
            let made = new.create(&options).made();
            is(ada.post(ALL, json!({ "name": "x", "credential": made })).await, bad, begun);
        }
        let mut options = ada.begin("").await;
        options["publicKey"]["rpId"] = json!(RP_ID);
        let said = hers.get(&options);
        is(ada.show("/sign-in", &said, &hers).await, bad, "made for adding");
        // Of another session, of the same person and of another one.
        let made = new.create(&ada.begin("").await).made();
        let wish = json!({ "name": "x", "credential": made });
        let (mut again, sealed) = (Pocket::new(&house), ada.cookies[ceremony].clone());
        assert_eq!(again.sign_in(&mut hers).await.status, 200);
        again.cookies.insert(ceremony.to_owned(), sealed.clone());
        is(again.post(ALL, wish.clone()).await, bad, "another session");
        eve.cookies.insert(ceremony.to_owned(), sealed);
        is(eve.post(ALL, wish.clone()).await, bad, "another person");
        is(ada.post(ALL, wish).await, (200, ""), "its own");
        // Somebody else's passkey is no step-up, and cannot be added again, by nobody.
        let said =
            Saying { id: evil.id.clone(), handle: Some(evil.handle.clone()), ..evil.get(&ada.begin("/step-up").await) };
        is(ada.show("/step-up", &said, &evil).await, (401, "sign_in_failed"), "Eve's passkey");
        for pocket in [&mut ada, &mut eve] {
            let said = hers.create(&pocket.begin("").await);
            is(
                pocket.post(ALL, json!({ "name": "x", "credential": said.made() })).await,
                (409, "conflict"),
                "it is Ada's",
            );
        }
        // Hers is hers: nobody else renames or removes it.
        let id = ada.list().await[0]["passkey_id"].as_str().expect("an id").to_owned();
        let path = format!("{ALL}/{id}");
        assert_eq!(eve.ask("PATCH", &path, Some(json!({ "name": "mine" }))).await.status, 404);
        assert_eq!(eve.ask("DELETE", &path, None).await.status, 404);
        assert_eq!(eve.ask("DELETE", &format!("{ALL}/x"), None).await.status, 404);
        // Too late.
        let mut late = Pocket::new(&house);
        let said = hers.get(&late.begin("/sign-in").await);
        house.later(5 * 60_000).await;
        is(late.show("/sign-in", &said, &hers).await, bad, "after five minutes");
        // A page of another site begins nothing.
        let other = house.http.post(house.url(&format!("{ALL}/sign-in/start"))).header("sec-fetch-site", "cross-site");
        assert_eq!(other.send().await.expect("a reply").status(), 403);
        house.quiet().await;
    }
}
