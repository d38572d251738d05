//! Who made a video.

use crate::call::task::{TaskHome, home};
use crate::sale::Serving;
use tollgate_media::video::Api;
use tollgate_store::Task;

/// Who can be asked about a video that was made over this API.
pub(super) fn maker(serving: &Serving, task: &Task, api: Api) -> TaskHome {
    home(serving, task, |provider| provider.kind.video.is_some_and(|video| video.speaks(api)))
}
