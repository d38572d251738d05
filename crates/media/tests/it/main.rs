//! Tests of the media from outside, in one executable.

mod audio;
mod read;
mod video;
mod video_page;
