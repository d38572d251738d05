//! `[tasks]` in tollgate.toml: how open tasks are looked after.

use std::time::Duration;
use tollgate_catalog::form::Form;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSettings {
    /// How often due tasks are looked for.
    pub look_every: Duration,
    /// Tasks looked at at once.
    pub parallel: usize,
    /// The longest question about one task; a look may ask three.
    pub look_time: Duration,
    /// How long a look waits for its turn where a provider limits questions.
    pub turn_time: Duration,
    /// Whoever reads an open task that was last heard of longer ago than this has its provider
    /// asked.
    pub refresh_after: Duration,
    /// How long a task is waited for; absent: by the length of the video.
    pub patience: Option<Duration>,
    /// How long the fate of a task may stay unknown before the operator takes the loss, as long as
    /// its provider remembers it.
    pub unknown_time: Duration,
    /// How long a provider must have said that it has no such task to be believed.
    pub absent_time: Duration,
}

impl Default for TaskSettings {
    fn default() -> TaskSettings {
        TaskSettings {
            look_every: Duration::from_secs(1),
            parallel: 256,
            look_time: Duration::from_secs(30),
            turn_time: Duration::from_secs(5),
            refresh_after: Duration::from_secs(5),
            patience: None,
            unknown_time: Duration::from_secs(72 * 3_600),
            absent_time: Duration::from_secs(15 * 60),
        }
    }
}

impl TaskSettings {
    pub fn read(form: &mut Form<'_>) -> TaskSettings {
        let default = TaskSettings::default();
        let mut table = form.table("tasks");
        let settings = TaskSettings {
            look_every: table.duration_or("look_every", default.look_every),
            parallel: table.int_or("parallel", default.parallel, 1..=100_000),
            look_time: table.duration_or("look_time", default.look_time),
            turn_time: table.duration_or("turn_time", default.turn_time),
            refresh_after: table.duration_or("refresh_after", default.refresh_after),
            patience: table.opt_duration("patience"),
            unknown_time: table.duration_or("unknown_time", default.unknown_time),
            absent_time: table.duration_or("absent_time", default.absent_time),
        };
        table.finish();
        settings
    }

    /// Nobody else has a task for so long: longer than any look, which waits for its turn, asks
    /// and, where that came to nothing at the last, asks the provider to drop the task; and has to
    /// write down what it found. A copy of the file has its own time.
    pub fn lease(&self) -> Duration {
        self.turn_time + self.look_time * 3 + self.look_time / 2
    }
}
