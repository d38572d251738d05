//! Faults around rerank and decisions. Their replies are short and come whole, so a client that
//! leaves has got nothing.

use super::{FUNDED, free};
use crate::house::{House, Plan};
use crate::v1::{decisions, embeddings, rerank};
use serde_json::{Value, json};
use std::time::Duration;
use tollgate_store::Ending;

/// Whoever does such work, and what the last text of a request to it says.
#[derive(Clone, Copy)]
enum Asked {
    Order,
    Decision,
}

impl Asked {
    async fn house(self, sim: &'static str) -> House {
        let (catalog, config) = match self {
            Asked::Order => (rerank::CATALOG, embeddings::PROVIDERS),
            Asked::Decision => (decisions::CATALOG, decisions::PROVIDERS),
        };
        House::with(Plan { catalog, config: config.to_owned(), sim, ..Plan::default() }).await
    }

    /// Each path and body that asks the provider `sim`, with so many documents or questions.
    fn requests(self, marker: &str, count: usize) -> Vec<(&'static str, Value)> {
        let said = format!("a red apple [[sim:{marker}]]");
        match self {
            Asked::Order => {
                let body = json!({ "model": "rank", "query": said, "documents": vec!["an apple"; count] });
                ["/v1/rerank", "/v2/rerank"].map(|path| (path, body.clone())).to_vec()
            }
            Asked::Decision => {
                let one = json!({ "type": "predicate", "instructions": "Is it red?" });
                let listed = json!({ "model": "judge-openai", "input": said, "questions": vec![one; count] });
                let yes = json!({ "type": "noul", "instructions": "Is it red?" });
                let named: Value = (0..count).map(|at| (format!("question-{at}"), yes.clone())).collect();
                let named = json!({ "model": "judge-openai", "state": said, "questions": named });
                vec![("/v1/decisions", listed), ("/v1/systemone", named)]
            }
        }
    }
}

async fn the_client_leaves(asked: Asked) {
    let house = asked.house("").await;
    let requests = asked.requests("hang", 3);
    for (path, body) in &requests {
        house.sim.clear();
        house.leave(house.http.post(house.url(path)).bearer_auth(&house.key).json(body)).await;
        while house.sim.received()[0].client_closed_at_ms.is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        house.quiet().await;
        assert_eq!(house.sim.received().len(), 1, "{path}: sent once");
    }
    let rows = house.all_rows().await;
    assert_eq!(rows.len(), requests.len());
    assert!(rows.values().all(|row| row.ending == Ending::ClientLeft && row.charge.nano() == 0), "{rows:?}");
    assert_eq!(house.available().await, FUNDED);
}

async fn the_provider_dies(asked: Asked) {
    let house = asked.house("").await;
    for marker in ["cut_midstream", "cut_midstream cut=fin"] {
        for (path, body) in asked.requests(marker, 3) {
            house.sim.clear();
            let request = house.http.post(house.url(path)).bearer_auth(&house.key).json(&body);
            let reply = request.send().await.expect("a reply");
            assert_eq!(reply.headers()["x-should-retry"], "false", "{path}: it may have been billed");
            free(&house, reply, (502, "upstream_error"), Some((Ending::UpstreamFault, "upstream_error"))).await;
            assert_eq!(house.sim.received().len(), 1, "{path}: not asked for again");
        }
    }
}

async fn the_answer_is_too_large(asked: Asked) {
    let house = asked.house("reply_bytes = \"4KiB\"").await;
    for (path, body) in asked.requests("tokens=1", 200) {
        house.sim.clear();
        let request = house.http.post(house.url(path)).bearer_auth(&house.key).json(&body);
        let reply = request.send().await.expect("a reply");
        assert_eq!(reply.headers()["x-should-retry"], "false", "{path}: it was billed");
        let code = "upstream_invalid_reply";
        free(&house, reply, (502, code), Some((Ending::UpstreamFault, code))).await;
        assert_eq!(house.sim.received().len(), 1, "{path}: not asked for again");
    }
    for (path, body) in asked.requests("tokens=1", 3) {
        let request = house.http.post(house.url(path)).bearer_auth(&house.key).json(&body);
        assert_eq!(request.send().await.expect("a reply").status(), 200, "{path}: what is short is served");
    }
}

pub async fn the_client_leaves_before_an_order() {
    the_client_leaves(Asked::Order).await;
}

pub async fn the_provider_dies_in_mid_order() {
    the_provider_dies(Asked::Order).await;
}

pub async fn an_order_is_too_large() {
    the_answer_is_too_large(Asked::Order).await;
}

pub async fn the_client_leaves_before_a_decision() {
    the_client_leaves(Asked::Decision).await;
}

pub async fn the_provider_dies_in_mid_decision() {
    the_provider_dies(Asked::Decision).await;
}

pub async fn a_decision_is_too_large() {
    the_answer_is_too_large(Asked::Decision).await;
}
