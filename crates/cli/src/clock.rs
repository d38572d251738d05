//! What time the ledger goes by, and an operator's word that the clock is right.

use crate::accounts::by_command_line;
use crate::args;
use crate::keys::ask;
use crate::show::Output;
use serde_json::Value;
use std::path::Path;
use std::process::ExitCode;
use tollgate_store::admin::AdminCommand;

/// Exits 1 while the clock is not believed, so that a script can watch it.
pub async fn clock(config: &Path, command: Option<&args::ClockCommand>, out: &Output) -> anyhow::Result<ExitCode> {
    let asked = match command {
        None => AdminCommand::ClockShow,
        Some(args::ClockCommand::Accept) => AdminCommand::ClockAccept { done: by_command_line() },
    };
    let state = ask(config, asked).await?;
    out.say(&state, || sentences(&state));
    Ok(if state["state"] == "refused" { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn sentences(state: &Value) -> String {
    let moment = |name: &str| {
        let at = jiff::Timestamp::from_millisecond(state[name].as_i64().unwrap_or_default()).unwrap_or_default();
        at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
    };
    let (now, sure, wall) = (moment("now_ms"), moment("sure_ms"), moment("wall_ms"));
    match state["state"].as_str() {
        Some("refused") => {
            format!("{now}\nThe clock says {wall} and is not used. If it is right: tollgate clock accept")
        }
        Some("unconfirmed") => format!(
            "{now}\nNothing is certain after {sure}: until the clock has run for a day no credit expires. If it is right: tollgate clock accept"
        ),
        _ => format!("{now}\nThe clock is right."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_wrong_is_said_with_the_way_out() {
        let state = |state: &str| json!({ "state": state, "now_ms": 1_790_000_000_000_i64, "sure_ms": 1_780_000_000_000_i64, "wall_ms": 1_800_000_000_000_i64 });
        assert_eq!(sentences(&state("right")), "2026-09-21 14:13:20 UTC\nThe clock is right.");
        let refused = sentences(&state("refused"));
        assert!(
            refused.contains("The clock says 2027-01-15 08:00:00 UTC") && refused.ends_with("tollgate clock accept")
        );
        let unconfirmed = sentences(&state("unconfirmed"));
        assert!(
            unconfirmed.contains("after 2026-05-28 20:26:40 UTC") && unconfirmed.ends_with("tollgate clock accept")
        );
    }
}
