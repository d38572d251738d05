//! Video tasks: the paths below /v1/videos and /v1/video/generations.

mod catalog;
mod money;
mod quote;
