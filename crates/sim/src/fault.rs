//! Calls that fail before any reply: the provider's HTTP errors. Their texts carry what careless
//! providers put there (internal hosts, request ids, stack traces, parts of keys), so that tests
//! can see it does not reach a client.

use bytes::Bytes;
use http::Response;

use crate::refusal::Refusal;
use crate::scenario::{Choice, Scenario as S};

/// The HTTP error a scenario answers with, if that is what it does.
pub(crate) fn of(choice: &Choice) -> Option<Response<Bytes>> {
    match choice.scenario {
        S::Error(status) => {
            let mut response = refuse(&refusal(status, choice));
            if matches!(status, 429 | 503) {
                let seconds = choice.number("retry_after").unwrap_or(7);
                response.headers_mut().insert("retry-after", seconds.into());
            }
            Some(response)
        }
        S::Html500 => {
            let page = "<html><head><title>500</title></head><body>sim-edge-7.internal</body></html>";
            Some(response(500, "text/html", Bytes::from_static(page.as_bytes())))
        }
        S::Redirect => {
            let mut redirect = response(307, "text/plain", Bytes::new());
            let elsewhere = http::HeaderValue::from_static("http://127.0.0.1:9/elsewhere");
            redirect.headers_mut().insert("location", elsewhere);
            Some(redirect)
        }
        _ => None,
    }
}

/// A refusal as an HTTP reply.
pub(crate) fn refuse(refusal: &Refusal) -> Response<Bytes> {
    response(refusal.status, "application/json", refusal.json().to_string().into())
}

pub(crate) fn response(status: u16, content_type: &'static str, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
    response.headers_mut().insert("content-type", http::HeaderValue::from_static(content_type));
    response
}

/// What is said to be compressed; whoever does not look at that reads nonsense.
pub(crate) fn packed(status: u16) -> Response<Bytes> {
    let mut response =
        response(status, "application/json", Bytes::from_static(b"\x1f\x8b\x08\0\0\0\0\0\0\x03not really"));
    response.headers_mut().insert("content-encoding", http::HeaderValue::from_static("gzip"));
    response
}

/// What a provider says with an error status.
pub(crate) fn refusal(status: u16, choice: &Choice) -> Refusal {
    let text = match status {
        400 => "Unsupported value: 'model_options' does not support 7 with this model.",
        401 => "Incorrect API key provided: sk-sim-********wxyz. See https://platform.sim.internal/keys.",
        402 => "You exceeded your current quota, organization org-sim-12345.",
        403 => "Project `proj_sim_98765` does not have access to this model.",
        404 => "The model does not exist or you do not have access to it.",
        408 => "The request took too long.",
        413 => "The request is too large.",
        422 => "The request cannot be processed: messages[0] is odd.",
        429 => "Rate limit reached for organization org-sim-12345 on requests per min (RPM): Limit 3, Used 3.",
        500 => {
            "Traceback (most recent call last): File \"/srv/app/serve.py\", line 41, in run; \
             host sim-worker-3.internal; request id req_0123456789abcdef"
        }
        _ => "The engine is currently overloaded, please try again later.",
    };
    let refusal = Refusal::new(status, text).with_code(choice.text("code"));
    if status == 400 { refusal.with_param("model_options") } else { refusal }
}
