//! Video tasks: the paths below /v1/videos and /v1/video/generations.

mod bounded;
mod catalog;
mod checklist;
mod copies;
mod copying;
mod families_ae;
mod families_cd;
mod family_b;
mod five_hundred;
mod homes;
mod life;
mod lost;
mod money;
mod pace;
mod quote;
mod reading;
mod reported;
mod scenarios;
mod table;
mod twice;
mod webhooks;
