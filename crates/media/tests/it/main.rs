//! Tests of the media from outside, in one executable.

mod audio;
mod fuzz;
mod hostile;
mod read;
mod realtime;
mod video;
mod video_page;
