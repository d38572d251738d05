//! The fault matrix of the design, row by row, and the case of ours that stands for each. A row
//! that is not here, or whose case is in no row of docs/faults.md, is a fault that nobody injects.

/// The first column of the design's matrix, and a case. Payments do not exist yet.
pub const DESIGN: [(&str, &str); 53] = [
    ("Authenticate: bad/expired/revoked key", "gateway::a_bad_key"),
    ("Authenticate: key store unreachable, key cached <= 60 s", "cli::the_key_store_is_away"),
    ("Parse/limits/unknown parameter", "gateway::a_request_that_cannot_be_read"),
    ("Model unpriced or paused", "gateway::a_model_that_is_paused"),
    ("Hold: insufficient (bucket rule included)", "gateway::not_enough_money"),
    ("Hold: ledger down", "gateway::the_ledger_is_down"),
    ("Hold: ledger slow (> deadline 2 s)", "gateway::the_ledger_is_slow"),
    ("Hold: commit outcome unknown (connection lost at commit)", "store::the_outcome_of_a_commit_is_unknown"),
    ("Hold: locked / deadlock", "gateway::the_database_is_locked_for_a_moment"),
    ("Hold: disk full", "gateway::the_disk_is_full"),
    ("Send upstream: connect refused/DNS/TLS (no byte sent)", "gateway::nobody_listens"),
    ("Send: reset after bytes sent, chat", "gateway::reset_after_the_request_was_sent"),
    ("Send: reset/timeout after bytes sent, **video create**", "gateway::a_creation_without_an_answer"),
    ("Upstream 4xx", "gateway::the_provider_refuses"),
    ("Upstream 429", "gateway::the_provider_is_busy"),
    ("Upstream 5xx before output", "gateway::the_provider_fails_before_output"),
    ("First byte late (> TTFB limit)", "gateway::the_first_byte_is_late"),
    ("Stream: error mid-way", "gateway::a_stream_that_breaks"),
    ("Stream: ends without usage", "gateway::a_stream_without_usage"),
    ("Stream: upstream sends garbage/endless line", "gateway::garbage_and_endless_lines"),
    ("Client gone before first byte", "gateway::the_client_leaves_before_the_first_byte"),
    ("Client gone mid-stream", "gateway::the_client_leaves_in_mid_stream"),
    ("Client never reads", "gateway::the_client_never_reads"),
    ("Gateway panic in a handler", "gateway::a_handler_panics"),
    ("**kill -9** between hold and send", "cli::killed_before_the_request_was_sent"),
    ("kill -9 after send, chat", "cli::killed_in_mid_stream"),
    ("kill -9 after video accepted, id stored", "cli::killed_after_a_video_was_accepted"),
    ("kill -9 after video accepted, id **not** yet stored", "cli::killed_while_a_video_is_accepted"),
    ("kill -9 during settle commit", "cli::killed_while_it_settles"),
    ("Ledger down at settle", "gateway::the_ledger_is_down_at_settle"),
    ("Disk full at settle", "gateway::the_disk_is_full_at_settle"),
    ("Clock jumps forward 2 h", "gateway::the_clock_jumps_forward"),
    ("Clock jumps back 2 h", "gateway::the_clock_jumps_back"),
    ("Duplicate request, same key, first running", "gateway::the_first_is_still_running"),
    ("Duplicate, same key, first finished", "gateway::the_first_is_finished"),
    ("Duplicate, same key, other body", "gateway::another_body"),
    ("Duplicate after retention", "gateway::after_the_retention"),
    ("Video task failed upstream", "gateway::a_task_fails"),
    ("Video completed", "gateway::a_task_is_completed"),
    ("Poller crash between upstream answer and commit", "gateway::the_poller_dies_before_the_commit"),
    ("Refund attempted twice (any cause)", "gateway::a_refund_twice"),
    ("Two replicas poll one task", "gateway::two_replicas_poll_one_task"),
    ("Replica with stale lease writes late", "gateway::a_replica_writes_after_its_lease"),
    ("Upstream says completed after we said failed", "gateway::success_after_we_said_failed"),
    ("Upstream status flaps (completed -> processing)", "gateway::the_state_goes_back"),
    ("Signed URL expired before download", "gateway::the_link_has_expired"),
    ("Webhook top-up delivered 5 times, in parallel", "gateway::a_top_up_delivered_five_times_at_once"),
    ("Top-up webhook before order row exists", "gateway::a_payment_reported_before_its_session_is_known"),
    ("Admin adjusts during calls", "gateway::an_adjustment_during_calls"),
    ("Catalog reload fails", "gateway::a_catalog_that_cannot_be_loaded"),
    ("Overload 10x", "gateway::overload"),
    ("SIGTERM with streams open", "cli::terminated_with_streams_open"),
    ("Schema migration while running", "cli::a_replica_starts_beside_another"),
];

/// The first column as the design has it; nothing beside a checkout of the project alone.
fn written() -> Option<Vec<String>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/design/money.md");
    let design = std::fs::read_to_string(path).ok()?;
    let matrix = design.split("## 3 Fault matrix").nth(1)?.split("\n## ").next()?;
    let rows = matrix.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| Step"));
    Some(rows.filter_map(|line| line.split('|').nth(1)).map(|cell| cell.trim().to_owned()).collect())
}

/// `cases` is the last column of every row of docs/faults.md.
pub fn every_row_is_there(cases: &[&str]) {
    for (row, case) in DESIGN {
        assert!(cases.iter().any(|cell| cell.contains(case)), "{row}: no row of docs/faults.md names {case}");
    }
    if let Some(written) = written() {
        assert_eq!(written, DESIGN.map(|(row, _)| row), "the matrix of the design has changed");
    }
}
