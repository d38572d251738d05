//! A provider's failure: whose fault, the client's error, and whether another route may be
//! tried.

use crate::Chat;
use tollgate_wire::Problem;
use tollgate_wire::StreamFault;
use tollgate_wire::error::Code;

/// Who has to change something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The caller's request.
    Caller,
    /// Our account or configuration at the provider: raise an alarm.
    Operator,
    /// The provider.
    Provider,
    /// The way there.
    Network,
}

/// One failed attempt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    pub blame: Blame,
    /// What the client gets when no other route helps.
    pub code: Code,
    /// Safe for the client: no hosts, addresses, request ids or keys; at most 1 KiB.
    pub message: String,
    /// The field the provider names when the request is to blame.
    pub param: Option<String>,
    /// Another route may do better.
    pub try_other: bool,
    /// Bytes of the request may have reached the provider.
    pub sent: bool,
    /// The provider may bill us for it although there was no answer.
    pub maybe_charged: bool,
    pub upstream_status: Option<u16>,
    /// The provider's own word for it, where that is the caller's affair.
    pub upstream_code: Option<String>,
    /// What else the provider says of a request that is to blame, for programs: a JSON object of a
    /// few short values, for clients of the provider's own dialect.
    pub details: Option<Box<str>>,
    /// Seconds, at most 60.
    pub retry_after: Option<u32>,
    /// The provider did not accept sealed reasoning; it may accept the same request without.
    pub seals: bool,
}

impl Fault {
    fn new(blame: Blame, code: Code, message: &str) -> Fault {
        Fault {
            blame,
            code,
            message: message.to_owned(),
            param: None,
            try_other: true,
            sent: true,
            maybe_charged: false,
            upstream_status: None,
            retry_after: None,
            upstream_code: None,
            details: None,
            seals: false,
        }
    }

    /// Nothing was sent: refused, no such host, TLS trouble.
    pub fn unreachable() -> Fault {
        Fault { sent: false, ..Fault::new(Blame::Network, Code::UpstreamError, "The provider cannot be reached.") }
    }

    /// Nothing was sent: no connection in time.
    pub fn connect_timeout() -> Fault {
        let message = "The provider did not accept a connection in time.";
        Fault { sent: false, ..Fault::new(Blame::Network, Code::UpstreamTimeout, message) }
    }

    /// Nothing was sent: the gateway keeps to the provider's limit.
    pub fn no_turn() -> Fault {
        let message = "The provider is asked as often as it allows.";
        Fault { sent: false, ..Fault::new(Blame::Provider, Code::RateLimitExceeded, message) }
    }

    /// The connection broke after the request may have been sent.
    pub fn reset() -> Fault {
        let message = "The connection to the provider broke before it answered.";
        Fault { maybe_charged: true, ..Fault::new(Blame::Network, Code::UpstreamError, message) }
    }

    /// The connection broke inside the reply.
    pub fn cut() -> Fault {
        let message = "The connection to the provider broke in the middle of its answer.";
        Fault { maybe_charged: true, ..Fault::new(Blame::Network, Code::UpstreamError, message) }
    }

    /// What was sent on while it arrived broke off, or was not as long as announced. The provider
    /// has a part of a request, which is none.
    pub fn upload_broken() -> Fault {
        let message = "The upload broke off before it was complete.";
        Fault { try_other: false, ..Fault::new(Blame::Caller, Code::InvalidRequest, message) }
    }

    /// What was spooled of the request cannot be read any more. It is our disk, and the same along
    /// every route; the provider has a part of a request, which is none.
    pub fn own_file() -> Fault {
        let message =
            "The gateway could not read its temporary copy of the upload; nothing is charged for this request.";
        Fault { try_other: false, ..Fault::new(Blame::Network, Code::Internal, message) }
    }

    /// What was sent on while it arrived stopped arriving.
    pub fn upload_late() -> Fault {
        let message = "The upload stopped arriving before it was complete.";
        Fault { try_other: false, ..Fault::new(Blame::Caller, Code::RequestTimeout, message) }
    }

    /// The provider closed the connection of what was sent on while it arrived, after it had waited
    /// for more of it. It has a part of a request, which is none.
    pub fn upload_slow() -> Fault {
        let message = "The upload arrived so slowly that the provider closed the connection.";
        Fault { try_other: false, ..Fault::new(Blame::Caller, Code::RequestTimeout, message) }
    }

    /// The route that was chosen before the upload began is not there any more.
    pub fn way_gone() -> Fault {
        let message = "The route of this upload is no longer available; send the request again.";
        let fault = Fault::new(Blame::Caller, Code::NoRouteAvailable, message);
        Fault { sent: false, retry_after: Some(1), ..fault }
    }

    /// No headers in time.
    pub fn late() -> Fault {
        let message = "The provider did not answer in time.";
        Fault { maybe_charged: true, ..Fault::new(Blame::Provider, Code::UpstreamTimeout, message) }
    }

    /// The reply stopped coming.
    pub fn idle() -> Fault {
        let message = "The provider stopped sending in the middle of its answer.";
        Fault { maybe_charged: true, ..Fault::new(Blame::Provider, Code::UpstreamTimeout, message) }
    }

    /// The reply is larger than we take.
    pub fn too_long() -> Fault {
        let message = "The provider's answer is larger than the gateway accepts.";
        Fault { maybe_charged: true, ..Fault::new(Blame::Provider, Code::UpstreamInvalidReply, message) }
    }

    /// The reply is not what was asked for.
    pub fn garbage() -> Fault {
        let message = "The provider's answer could not be understood.";
        Fault { maybe_charged: true, ..Fault::new(Blame::Provider, Code::UpstreamInvalidReply, message) }
    }

    /// The reply is compressed, although that was not asked for. It is let go at its head, unread,
    /// so that another route may do what this one does not.
    pub fn encoded() -> Fault {
        let message = "The provider's answer is compressed, which it was asked not to do.";
        Fault::new(Blame::Provider, Code::UpstreamInvalidReply, message)
    }

    /// A file server answered, and not with the file.
    pub fn no_file(status: u16) -> Fault {
        let (code, message) = match status {
            200..=299 => {
                (Code::UpstreamInvalidReply, format!("The provider's file server sent no file (HTTP {status})."))
            }
            408 | 504 => (Code::UpstreamTimeout, format!("The provider's file server took too long (HTTP {status}).")),
            _ => (Code::UpstreamError, format!("The provider's file server failed (HTTP {status}).")),
        };
        Fault { upstream_status: Some(status), ..Fault::new(Blame::Provider, code, &message) }
    }

    /// The stream ended without its last event.
    pub fn truncated() -> Fault {
        let message = "The provider ended the stream before it was complete.";
        Fault { maybe_charged: true, ..Fault::new(Blame::Provider, Code::UpstreamError, message) }
    }

    /// Our own "no", before anything was sent: another route may be able to take the request as it
    /// is.
    pub fn refusal(problem: Problem) -> Fault {
        let fault = Fault::new(Blame::Caller, problem.code, &problem.message);
        Fault { sent: false, param: problem.param, ..fault }
    }

    /// Whether the provider may have begun what it was asked for, though nothing is known to have
    /// come of it: nobody else is asked, and the caller shall not ask again by itself.
    pub fn may_have_begun(&self) -> bool {
        self.maybe_charged || (self.sent && !self.try_other && self.blame == Blame::Provider)
    }

    pub fn is_refusal(&self) -> bool {
        self.blame == Blame::Caller && !self.sent && !self.maybe_charged
    }

    /// What a broken stream means; `chat` reads the provider's own errors.
    pub fn of_stream(chat: &dyn Chat, fault: &StreamFault) -> Fault {
        match fault {
            StreamFault::Upstream(error) => chat.error_inside(error),
            StreamFault::TooLong => Fault::too_long(),
            StreamFault::Garbage => Fault::garbage(),
        }
    }
}
