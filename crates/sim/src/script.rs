//! A reply body played step by step: pieces, pauses, silence and cuts. Each piece reaches the
//! socket in a write of its own, because real providers flush every event and a gateway must not
//! depend on luckier framing.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::sleep;

use crate::record::Watch;
use crate::scenario::Choice;
use crate::server::Reset;
use crate::video::Gate;

pub(crate) enum Step {
    Send(Bytes),
    Wait(Duration),
    /// The same piece so many times, as fast as it is taken.
    Repeat(Bytes, u64),
    /// Waits for something else to happen.
    Until(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// Nothing more, but the connection stays.
    Silence,
    /// The connection ends here, by a reset or by closing the socket.
    Cut {
        reset: bool,
    },
}

/// `door=N`: after N pieces the tests' door is waited for, which is open unless a test shuts it.
pub(crate) fn with_door(mut steps: Vec<Step>, choice: &Choice, gate: &Gate) -> Vec<Step> {
    if let Some(pieces) = choice.number("door") {
        let sends = steps.iter().enumerate().filter(|(_, step)| matches!(step, Step::Send(_)));
        let place = sends.map(|(place, _)| place).nth(usize::try_from(pieces).unwrap_or(usize::MAX));
        steps.insert(place.unwrap_or(steps.len()), Step::Until(gate.opening("/_door")));
    }
    steps
}

/// How a script relates to the reply it plays.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Proper,
    Broken,
}

pub(crate) struct Script {
    steps: VecDeque<Step>,
    ending: Ending,
    /// Absent for the fast scenarios, which are not recorded.
    watch: Option<Watch>,
    reset: Reset,
    pause: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    flush: bool,
}

impl Script {
    pub fn new(steps: Vec<Step>, ending: Ending, watch: Option<Watch>, reset: Reset) -> Self {
        Self { steps: steps.into(), ending, watch, reset, pause: None, flush: false }
    }

    fn sent(&mut self) {
        if let Some(watch) = &self.watch {
            watch.sent_one();
        }
        // A body whose length is known is not asked again after its last piece, so the end is noted
        // with that piece.
        if self.steps.is_empty() {
            self.over();
        }
    }

    fn over(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.over(self.ending == Ending::Proper);
        }
    }
}

impl Body for Script {
    type Data = Bytes;
    type Error = CutOff;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        loop {
            if std::mem::take(&mut self.flush) {
                // The connection flushes whenever the body has nothing ready.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            match self.steps.pop_front() {
                None => {
                    self.over();
                    return Poll::Ready(None);
                }
                Some(Step::Wait(pause)) => {
                    if !pause.is_zero() {
                        self.pause = Some(Box::pin(sleep(pause)));
                    }
                }
                Some(Step::Until(pause)) => self.pause = Some(pause),
                Some(Step::Send(piece)) => {
                    self.flush = true;
                    self.sent();
                    return Poll::Ready(Some(Ok(Frame::data(piece))));
                }
                Some(Step::Repeat(_, 0)) => {}
                Some(Step::Repeat(piece, times)) => {
                    if times > 1 {
                        self.steps.push_front(Step::Repeat(piece.clone(), times - 1));
                    }
                    self.sent();
                    return Poll::Ready(Some(Ok(Frame::data(piece))));
                }
                Some(Step::Silence) => {
                    self.steps.push_front(Step::Silence);
                    return Poll::Pending;
                }
                Some(Step::Cut { reset }) => {
                    if reset {
                        self.reset.arm();
                    }
                    if let Some(watch) = &mut self.watch {
                        watch.over(false);
                    }
                    return Poll::Ready(Some(Err(CutOff)));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.steps.is_empty() && self.pause.is_none()
    }
}

/// Tells the HTTP library to drop the connection; nobody else sees it.
#[derive(Debug)]
pub(crate) struct CutOff;

impl fmt::Display for CutOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the scenario cuts the connection here")
    }
}

impl std::error::Error for CutOff {}
