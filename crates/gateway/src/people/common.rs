//! Passwords that are tried first. Those of ten characters and more are nearly all a few words with
//! digits around them, runs of the keyboard, or one piece again and again; so a short list of words
//! and three rules stand for a long list.

/// Words that lists of leaked passwords begin with, after what stands around them is taken away.
const WORDS: &[&str] = &[
    "password",
    "passwort",
    "passw",
    "pass",
    "qwerty",
    "qwertz",
    "azerty",
    "qwertyuiop",
    "asdfgh",
    "asdfghjkl",
    "zxcvbn",
    "zxcvbnm",
    "qazwsx",
    "qazwsxedc",
    "iloveyou",
    "ilove",
    "loveyou",
    "loveme",
    "letmein",
    "welcome",
    "admin",
    "administrator",
    "root",
    "login",
    "master",
    "monkey",
    "dragon",
    "sunshine",
    "princess",
    "football",
    "baseball",
    "basketball",
    "superman",
    "batman",
    "spiderman",
    "pokemon",
    "michael",
    "jennifer",
    "jordan",
    "michelle",
    "charlie",
    "daniel",
    "jessica",
    "ashley",
    "computer",
    "internet",
    "samsung",
    "google",
    "facebook",
    "apple",
    "microsoft",
    "windows",
    "changeme",
    "change",
    "secret",
    "default",
    "guest",
    "user",
    "test",
    "testing",
    "temp",
    "temporary",
    "demo",
    "hello",
    "helloworld",
    "hallo",
    "freedom",
    "whatever",
    "trustno",
    "starwars",
    "liverpool",
    "chelsea",
    "arsenal",
    "barcelona",
    "summer",
    "winter",
    "spring",
    "autumn",
    "january",
    "february",
    "december",
    "monday",
    "friday",
    "love",
    "family",
    "baby",
    "angel",
    "jesus",
    "killer",
    "hunter",
    "ranger",
    "shadow",
    "mustang",
    "harley",
    "ferrari",
    "mercedes",
    "porsche",
    "cookie",
    "chocolate",
    "pepper",
    "ginger",
    "butterfly",
    "flower",
    "purple",
    "orange",
    "yellow",
    "silver",
    "golden",
    "diamond",
    "lucky",
    "dream",
    "god",
    "blessed",
    "blink",
    "naruto",
    "minecraft",
    "fortnite",
    "matrix",
    "access",
    "system",
    "server",
    "database",
    "oracle",
    "cisco",
    "linux",
    "ubuntu",
    "company",
    "office",
    "tollgate",
    "gateway",
    "openai",
    "claude",
    "gemini",
    "abc",
    "abcd",
    "abcde",
    "abcdef",
    "woaini",
    "woaiwojia",
    "nihao",
    "mima",
    "zaq",
    "xsw",
    "onetwothree",
    "superstar",
    "rockyou",
    "myspace",
    "anthony",
    "matthew",
    "andrew",
    "thomas",
    "robert",
    "joshua",
    "nicole",
];

/// Rows of the keyboard and of the alphabet, forwards; they are looked for in both directions.
const RUNS: &[&str] = &[
    "01234567890123456789",
    "qwertyuiop",
    "qwertzuiop",
    "asdfghjkl",
    "zxcvbnm",
    "yxcvbnm",
    "abcdefghijklmnopqrstuvwxyz",
    "1qaz2wsx3edc4rfv5tgb",
    "qazwsxedcrfvtgb",
];

pub fn is_common(password: &str, email: &str) -> bool {
    let plain = password.to_lowercase();
    let letters = unleeted(&plain);
    let stripped = letters.trim_matches(|c: char| !c.is_alphabetic());
    let name = email.split('@').next().unwrap_or_default().to_lowercase();
    is_repeated(&plain)
        || is_run(&plain)
        || made_of_words(stripped)
        || (name.chars().count() >= 4 && plain.contains(&name))
}

/// Digits and signs that stand for letters.
fn unleeted(text: &str) -> String {
    let letter = |c| match c {
        '0' => 'o',
        '1' | '!' => 'i',
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' => 't',
        other => other,
    };
    // What stands at the end are digits and signs, not letters in disguise.
    let core = text.trim_end_matches(|c: char| !c.is_alphabetic());
    core.chars().map(letter).chain(text[core.len()..].chars()).collect()
}

/// One or two of the words, and nothing else but what is no letter.
fn made_of_words(text: &str) -> bool {
    let text: String = text.chars().filter(|c| c.is_alphabetic()).collect();
    let rest = |word: &&str| text.strip_prefix(*word).is_some_and(|rest| rest.is_empty() || WORDS.contains(&rest));
    text.is_empty() || WORDS.iter().any(rest)
}

/// One piece of up to four characters again and again.
fn is_repeated(text: &str) -> bool {
    let all: Vec<char> = text.chars().collect();
    (1..=4).any(|length| all.iter().zip(all.iter().skip(length)).all(|(one, other)| one == other))
}

/// A walk along the keyboard, in either direction.
fn is_run(text: &str) -> bool {
    let backwards: String = text.chars().rev().collect();
    let runs =
        |text: &str| RUNS.iter().any(|run| run.contains(text) || (text.len() > run.len() && is_cycle(run, text)));
    runs(text) || runs(&backwards)
}

/// The run, and then the run again.
fn is_cycle(run: &str, text: &str) -> bool {
    run.chars().cycle().take(text.chars().count()).eq(text.chars())
}
