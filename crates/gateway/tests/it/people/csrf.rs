//! What a page of another site can do with somebody's cookie: nothing.

use super::{answer, house, signed_in};
use tollgate_store::HouseRole;

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_opens_changes_from_our_own_page_only() {
    let house = house("sqlite").await;
    let operator = signed_in(&house, "op@example.com", Some(HouseRole::Operator), None).await;
    let ours = house.url("");
    let origins = [None, Some(ours.as_str()), Some("https://evil.example"), Some("null")];
    let sites = [None, Some("same-origin"), Some("same-site"), Some("cross-site"), Some("none")];
    let kinds = ["application/json", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"];
    let changes = [
        ("POST", "/api/session/step-up", "{\"password\":\"wrong wrong wrong\"}"),
        ("POST", "/api/admin/accounts", "{\"name\":\"x\",\"reason\":\"a test\"}"),
        ("PATCH", "/api/account/members/pers_00000000000000000000000000", "{\"role\":\"owner\"}"),
    ];
    for origin in origins {
        for site in sites {
            let from_us = match (site, origin) {
                (Some(site), _) => site == "same-origin",
                (None, Some(origin)) => origin == ours,
                (None, None) => false,
            };
            let with = |method: &str, path: &str| {
                let mut request = operator.request(method, path);
                if let Some(origin) = origin {
                    request = request.header("origin", origin);
                }
                if let Some(site) = site {
                    request = request.header("sec-fetch-site", site);
                }
                request
            };
            for kind in kinds {
                for (method, path, body) in changes {
                    let reply = with(method, path).header("content-type", kind).body(body).send().await;
                    let got = answer(reply.expect("a reply")).await;
                    let case = format!("{method} {path} {origin:?} {site:?} {kind}: {} {}", got.status, got.body);
                    match (from_us, kind) {
                        (false, _) => assert_eq!(got.code, "cross_site_request", "{case}"),
                        (true, "application/json") => {
                            assert!(got.code != "cross_site_request" && got.status != 415, "{case}");
                        }
                        (true, _) => assert_eq!(got.code, "unsupported_media_type", "{case}"),
                    }
                }
            }
            // Reading changes nothing; a page of another site cannot read the answer.
            let reply = with("GET", "/api/session").send().await.expect("a reply");
            assert!(!reply.headers().contains_key("access-control-allow-origin"), "{origin:?}");
            assert_eq!(reply.status(), 200, "{origin:?} {site:?}");
            // Signing in as somebody else from another page.
            let wish = "{\"email\":\"op@example.com\",\"password\":\"wrong wrong wrong\"}";
            let mut request = house.http.post(house.url("/api/session")).header("content-type", "application/json");
            request = origin.into_iter().fold(request, |request, origin| request.header("origin", origin));
            request = site.into_iter().fold(request, |request, site| request.header("sec-fetch-site", site));
            let got = answer(request.body(wish).send().await.expect("a reply")).await;
            let script = origin.is_none() && site.is_none();
            assert_eq!(got.code == "cross_site_request", !from_us && !script, "{origin:?} {site:?}: {}", got.body);
        }
    }
    let accounts = house.running().app.store.accounts(None, 100).await.expect("accounts");
    let made = accounts.iter().filter(|account| account.name == "x").count();
    assert_eq!(made, 5, "four origins of our own page, and our own origin by itself");
}
