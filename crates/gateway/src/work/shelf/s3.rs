//! A bucket that speaks S3, reached through our own client: one HTTP stack, one crypto library, the
//! same limits.

use crate::settings::Bucket;
use bytes::Bytes;
use http::Request;
use http_body::Frame;
use http_body_util::BodyExt as _;
use object_store::ObjectStore;
use object_store::aws::AmazonS3Builder;
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService,
};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tollgate_upstream::Client;

/// For the headers of one answer.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn open(bucket: &Bucket, client: &Client) -> object_store::Result<Arc<dyn ObjectStore>> {
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&bucket.name)
        .with_region(&bucket.region)
        .with_allow_http(true)
        .with_http_connector(Ours(client.clone()));
    if let Some(endpoint) = &bucket.endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    builder = match &bucket.keys {
        Some((access, secret)) => builder.with_access_key_id(access).with_secret_access_key(secret),
        None => builder.with_skip_signature(true),
    };
    Ok(Arc::new(builder.build()?))
}

#[derive(Clone, Debug)]
struct Ours(Client);

impl HttpConnector for Ours {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

type Answer<'a> = Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'a>>;

impl HttpService for Ours {
    fn call<'a, 'f>(&'a self, request: HttpRequest) -> Answer<'f>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            let (head, body) = request.into_parts();
            // At most one part of an upload.
            let body: Bytes = body.collect().await?.to_bytes();
            let reply = self.0.ask(Request::from_parts(head, body.into()), PATIENCE).await.map_err(|fault| {
                let kind = if fault.sent { HttpErrorKind::Interrupted } else { HttpErrorKind::Connect };
                HttpError::new(kind, std::io::Error::other(fault.message))
            })?;
            Ok(reply.map(|answer| HttpResponseBody::new(Reading(Mutex::new(answer)))))
        })
    }
}

/// A reply's body in the form the library takes it. It wants to share bodies between threads and
/// never does; the lock is only asked through what is borrowed alone.
#[derive(Debug)]
struct Reading(Mutex<tollgate_upstream::IncomingBody>);

impl http_body::Body for Reading {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let answer = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        answer.poll_data(cx).map(|piece| {
            let piece = piece?.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error));
            Some(piece.map(Frame::data))
        })
    }
}
