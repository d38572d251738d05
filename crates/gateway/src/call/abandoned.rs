//! What a call that was dropped in the middle says: its client left, or a handler died. The settler
//! closes it.

use super::open::OpenCall;
use super::pass::Rewrite;
use super::reader::EventReader;
use tollgate_upstream::ReplyBody;

pub enum Abandoned {
    Call(Box<OpenCall>),
    /// A stream of a provider that bills to the end: it is read on, within bounds, to learn the
    /// true usage.
    Stream {
        call: Box<OpenCall>,
        body: Box<ReplyBody>,
        reader: Box<dyn EventReader>,
    },
    /// An answer that passed, of a provider that has made all of it: it is read on, within bounds,
    /// to learn what there is to pay for.
    Passing {
        call: Box<OpenCall>,
        body: Box<ReplyBody>,
        rewrite: Box<dyn Rewrite>,
        /// The most bytes that may still come.
        left: usize,
    },
}
