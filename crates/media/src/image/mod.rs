//! Pictures: what a request for them may say, which size is which, what a provider's answer holds,
//! and how it becomes our result while it passes.

mod escapes;
mod event_pictures;
mod events;
mod flow;
mod letters;
mod options;
mod plan;
mod predict;
mod records;
mod request;
mod result;
mod size;
mod sniff;
mod usage;

pub use events::EventPass;
pub use flow::{FlowBroke, Layout, PictureFlow};
pub use letters::{Base64Encoder, PictureCheck};
pub use plan::{IMAGE_FACTS, ImagePlan, ImageRules};
pub use predict::{imagen_parameters, predicted_name};
pub use records::{PicturePart, PictureRecords};
pub use request::{ImageRequest, PictureFormat, PictureSource};
pub use result::{PictureFacts, PictureTally, ResultStyle, ResultWriter};
pub use size::{Ratio, Shape, SizeClass};
pub use sniff::{ENOUGH_OF_TEXT, PictureKind, begins_as_text, made_kind, picture_kind};
pub use usage::added_usage;
