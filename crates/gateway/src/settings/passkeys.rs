//! `[people.passkeys]` in tollgate.toml: whether people sign in by passkeys, and for which domain
//! those are made. Without the table there are none.
//!
//! A passkey belongs to a domain (`rp_id`) for good, and browsers show it to pages of that domain
//! alone. So what does not fit is a mistake here, not a surprise on the day of a move.

use super::origin_of;
use std::net::IpAddr;
use tollgate_catalog::form::Form;

/// Origins beside our own.
const MOST_ORIGINS: usize = 20;
const LONGEST_NAME: usize = 60;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasskeySettings {
    /// The domain that passkeys are made for.
    pub rp_id: String,
    /// What browsers call us.
    pub rp_name: String,
    /// Whose pages may show one, as browsers write them; never empty.
    pub origins: Vec<String>,
}

impl PasskeySettings {
    pub fn read(form: &mut Form<'_>, public_url: Option<&str>) -> Option<PasskeySettings> {
        let mut table = form.opt_table("passkeys")?;
        let enabled = table.flag_or("enabled", true);
        let (rp_id, rp_name) = (table.opt_text("rp_id"), table.text_or("rp_name", "Tollgate"));
        let more = table.opt_texts("origins").unwrap_or_default();
        let own = public_url.and_then(origin_of);
        if !enabled {
            table.finish();
            return None;
        }
        let Some(own) = own else {
            table.mistake_here("passkeys belong to a domain: set `public_url`");
            table.finish();
            return None;
        };
        let rp_id = rp_id.unwrap_or_else(|| host_of(&own).to_owned());
        if let Err(why) = fit_rp_id(&rp_id) {
            table.mistake("rp_id", why);
        }
        if rp_name.chars().count() > LONGEST_NAME || rp_name.chars().any(char::is_control) {
            table.mistake("rp_name", format!("must have at most {LONGEST_NAME} characters, on one line"));
        }
        if more.len() > MOST_ORIGINS {
            table.mistake("origins", format!("must be at most {MOST_ORIGINS}"));
        }
        if let Err(why) = fit_origin(&own, &rp_id) {
            table.mistake("rp_id", format!("does not fit public_url: {why}"));
        }
        for origin in &more {
            if let Err(why) = fit_origin(origin, &rp_id) {
                table.mistake("origins", format!("{origin:?}: {why}"));
            }
        }
        table.finish();
        let mut origins = vec![own];
        origins.extend(more);
        origins.dedup();
        Some(PasskeySettings { rp_id, rp_name, origins })
    }
}

fn host_of(origin: &str) -> &str {
    let after = origin.split_once("://").map_or(origin, |(_, after)| after);
    after.rsplit_once(':').filter(|(_, port)| port.bytes().all(|c| c.is_ascii_digit())).map_or(after, |(host, _)| host)
}

fn is_local(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost")
}

fn fit_rp_id(rp_id: &str) -> Result<(), String> {
    let part = |part: &str| {
        (1..=63).contains(&part.len())
            && part.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    if rp_id.parse::<IpAddr>().is_ok() || rp_id.starts_with('[') {
        return Err("browsers make passkeys for names, not for addresses".to_owned());
    }
    if rp_id.len() > 253 || !rp_id.split('.').all(part) {
        return Err("must be a domain in lower case, such as example.com".to_owned());
    }
    if !rp_id.contains('.') && rp_id != "localhost" {
        return Err("must be a domain with a dot in it, or localhost".to_owned());
    }
    Ok(())
}

fn fit_origin(origin: &str, rp_id: &str) -> Result<(), String> {
    if origin_of(origin).as_deref() != Some(origin) {
        return Err("must be an origin as browsers write it: https://host, without a path".to_owned());
    }
    let host = host_of(origin);
    if !origin.starts_with("https://") && !is_local(host) {
        return Err("browsers show passkeys over https only, or on localhost".to_owned());
    }
    if host != rp_id && !host.strip_suffix(rp_id).is_some_and(|before| before.ends_with('.')) {
        return Err(format!("{host} is neither {rp_id} nor inside it"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_catalog::form::Mistakes;

    /// What a table comes to, or the fields and reasons of its mistakes.
    fn read(public_url: Option<&str>, table: &str) -> Result<Option<PasskeySettings>, String> {
        let mistakes = Mistakes::default();
        let text = format!("[passkeys]\n{table}");
        let mut form = Form::parse("x", &text, &mistakes);
        let settings = PasskeySettings::read(&mut form, public_url);
        form.finish();
        let all = mistakes.into_list();
        if all.is_empty() { Ok(settings) } else { Err(format!("{all:?}")) }
    }

    #[test]
    fn a_passkey_is_for_a_domain_of_ours() {
        let https = Some("https://gate.example.com");
        let good = |url, table: &str| read(url, table).expect("no mistakes").expect("on");
        let own = good(https, "");
        assert_eq!(
            (own.rp_id.as_str(), &*own.origins),
            ("gate.example.com", &["https://gate.example.com".to_owned()][..])
        );
        assert_eq!(good(https, "rp_id = \"example.com\"").rp_id, "example.com");
        assert_eq!(good(Some("https://gate.example.com:8443"), "").rp_id, "gate.example.com");
        assert_eq!(good(Some("http://localhost:8080"), "").origins, ["http://localhost:8080"]);
        let two = good(https, "rp_id = \"example.com\"\norigins = [\"https://console.example.com\"]");
        assert_eq!(two.origins.len(), 2);
        assert_eq!(read(https, "enabled = false").expect("no mistakes"), None);
        assert_eq!(read(None, "enabled = false").expect("no mistakes"), None);
        for (url, table, word) in [
            (None, "", "public_url"),
            (Some("http://gate.example.com"), "", "https"),
            (Some("https://192.0.2.1"), "", "addresses"),
            (Some("http://127.0.0.1:8080"), "", "addresses"),
            (Some("https://gateway"), "", "dot"),
            (https, "rp_id = \"other.com\"", "inside"),
            (https, "rp_id = \"ate.example.com\"", "inside"),
            (https, "rp_id = \"a.gate.example.com\"", "inside"),
            (https, "rp_id = \"com\"", "dot"),
            (https, "rp_id = \"Example.com\"", "lower case"),
            (https, "rp_id = \"https://example.com\"", "lower case"),
            (https, "rp_id = \"example.com.\"", "lower case"),
            (https, "origins = [\"https://gate.example.com/\"]", "without a path"),
            (https, "origins = [\"https://evil.example\"]", "inside"),
            (https, "origins = [\"http://gate.example.com\"]", "https only"),
            (https, "origins = [\"*\"]", "as browsers write it"),
            (https, "rp_nam = \"x\"", "rp_name"),
        ] {
            let why = read(url, table).expect_err(table);
            assert!(why.contains(word), "{url:?} {table}: {why}");
        }
    }
}
