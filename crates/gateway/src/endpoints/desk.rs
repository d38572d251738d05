//! What answers requests. A call goes from its path straight to its handler; what has parts that
//! vary, or another method, goes through the router.

use super::row::Direct;
use super::table::{router, rows};
use crate::app::App;
use crate::door::server::Responder;
use axum::Router;
use axum::body::Body;
use axum::response::Response;
use foldhash::HashMap;
use http::{Method, Request};
use std::sync::Arc;

pub struct Desk {
    app: Arc<App>,
    direct: HashMap<&'static str, Direct>,
    router: Router,
}

impl Desk {
    pub fn new(app: Arc<App>) -> Desk {
        let direct = rows().iter().filter_map(|row| Some((row.path, row.direct()?.clone()))).collect();
        Desk { direct, router: router(app.clone()), app }
    }
}

impl Responder for Desk {
    async fn answer(&self, request: Request<Body>) -> Response {
        if request.method() == Method::POST
            && let Some(direct) = self.direct.get(request.uri().path())
        {
            return direct(self.app.clone(), request).await;
        }
        self.router.answer(request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_calls_of_every_dialect_need_no_router() {
        let desk = Desk::new(crate::testing::bare_app().await);
        for path in ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/embeddings", "/v1/audio/speech"] {
            assert!(desk.direct.contains_key(path), "{path}");
        }
        // These have parts that vary, or replies that somebody else names.
        for path in desk.direct.keys() {
            let row = rows().iter().find(|row| row.path == *path && row.method == Method::POST).expect(path);
            assert!(row.in_path().next().is_none(), "{path}");
        }
        assert!(!desk.direct.contains_key("/v1/quote"));
    }
}
