//! The workflows that the demo comes with, files and all.

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        /// Each by its name below the folder of workflows.
        pub const FILES: [(&str, &[u8]); COUNT] =
            [$(($name, include_bytes!(concat!("../../../../catalog/workflows/", $name)))),*];
    };
}

/// How many files there are.
const COUNT: usize = 21;

files![
    "article-to-narration.json",
    "article-to-narration/fixture.json",
    "article-to-narration/package.toml",
    "clip-subtitles-translated.json",
    "clip-subtitles-translated/clip.wav",
    "clip-subtitles-translated/fixture.json",
    "clip-subtitles-translated/package.toml",
    "meeting-to-minutes.json",
    "meeting-to-minutes/fixture.json",
    "meeting-to-minutes/package.toml",
    "meeting-to-minutes/recording.wav",
    "product-photo-to-clip.json",
    "product-photo-to-clip/fixture.json",
    "product-photo-to-clip/package.toml",
    "product-photo-to-clip/photo.png",
    "social-search-digest.json",
    "social-search-digest/fixture.json",
    "social-search-digest/package.toml",
    "storyboard-to-shots.json",
    "storyboard-to-shots/fixture.json",
    "storyboard-to-shots/package.toml",
];
