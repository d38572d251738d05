//! `[jobs]` in tollgate.toml: how much room the files of exports may take, and for how long.

use crate::jobs::ExportRoom;
use std::time::Duration;
use tollgate_catalog::form::Form;

impl Default for ExportRoom {
    fn default() -> ExportRoom {
        ExportRoom { file_bytes: 1 << 30, all_bytes: 4 << 30, life_ms: 86_400_000 }
    }
}

pub fn export_room(form: &mut Form<'_>) -> ExportRoom {
    let default = ExportRoom::default();
    let mut table = form.table("jobs");
    let life = table.duration_or("export_life", Duration::from_secs(86_400));
    let room = ExportRoom {
        file_bytes: table.size_or("export_bytes", default.file_bytes),
        all_bytes: table.size_or("exports_bytes", default.all_bytes),
        life_ms: i64::try_from(life.as_millis()).unwrap_or(i64::MAX),
    };
    if room.file_bytes > room.all_bytes {
        table.mistake("export_bytes", "must not be above exports_bytes");
    }
    table.finish();
    room
}
