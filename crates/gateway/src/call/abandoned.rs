//! What a call that was dropped in the middle says: its client left, or a handler died. The settler
//! closes it.

use super::open::OpenCall;
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
}
