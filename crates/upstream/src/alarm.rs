//! A timer that is cheap to look at. A stream looks at its timers with every event, and asking a
//! timer properly registers the task to be woken each time. This one is asked again only when it
//! rang, was set anew, or another task looks.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::time::{Instant, Sleep, sleep_until};

#[derive(Debug)]
pub struct Alarm {
    sleep: Pin<Box<Sleep>>,
    /// Who is woken when it rings.
    wakes: Option<Waker>,
}

impl Alarm {
    pub fn at(when: Instant) -> Alarm {
        Alarm { sleep: Box::pin(sleep_until(when)), wakes: None }
    }

    pub fn set(&mut self, when: Instant) {
        self.sleep.as_mut().reset(when);
        self.wakes = None;
    }

    /// Ready once the time has come, until it is set anew.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let known = self.wakes.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        if known && !self.sleep.is_elapsed() {
            return Poll::Pending;
        }
        let polled = self.sleep.as_mut().poll(cx);
        self.wakes = polled.is_pending().then(|| cx.waker().clone());
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn it_rings_however_often_it_is_looked_at() {
        let began = Instant::now();
        let mut alarm = Alarm::at(began + Duration::from_secs(5));
        for _ in 0..3 {
            poll_fn(|cx| {
                assert!(alarm.poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
        }
        poll_fn(|cx| alarm.poll(cx)).await;
        assert_eq!(began.elapsed().as_secs(), 5);
        alarm.set(Instant::now() + Duration::from_secs(7));
        poll_fn(|cx| alarm.poll(cx)).await;
        assert_eq!(began.elapsed().as_secs(), 12);
    }

    #[tokio::test(start_paused = true)]
    async fn another_task_is_woken_too() {
        let mut alarm = Alarm::at(Instant::now() + Duration::from_secs(5));
        poll_fn(|cx| {
            assert!(alarm.poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        let mut other = tokio::task::JoinSet::new();
        other.spawn(async move { poll_fn(|cx| alarm.poll(cx)).await });
        assert!(other.join_next().await.expect("a task").is_ok());
    }
}
