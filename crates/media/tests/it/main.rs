//! Tests of the media from outside, in one executable.

mod video;
mod video_page;
