//! The table of faults (docs/faults.md), case by case: each injects its fault and looks at the
//! three things a fault can damage, the client's answer, the usage row and the balance. A row
//! without a case fails here, and so does a case without a row; what kills processes or databases
//! is in the executable's tests, what only the store can show in its own.

mod clients;
mod clock;
mod design;
mod health;
mod images;
mod ledger;
mod once;
mod orders;
mod recordings;
mod refused;
mod repeated;
mod sessions;
mod speech;
mod stored;
mod upstream;
mod vectors;
mod videos;

use crate::alerts;
use crate::api::{catalog, jobs, payments};
use crate::house::{House, call_id, error_of};
use crate::people::{issuers, mail, passkeys, sessions as sign_ins, smtp, trial};
use crate::tls;
use crate::v1::client_secrets;
use crate::v1::realtime::{closes, limits, money, turns};
use crate::v1::transcriptions::passing;
use crate::v1::workflow_runs::money as runs;
use crate::v1::workflow_runs::room;
use reqwest::Response;
use std::collections::BTreeSet;
use std::path::Path;
use tollgate_store::{CallId, Ending, UsagePage, UsageRow};

/// What every house of a fault begins with.
const FUNDED: i64 = 10_000_000_000;

macro_rules! cases {
    ($($module:ident: $($case:ident),+;)+) => {
        const CASES: &[&str] = &[$($(stringify!($case)),+),+];
        $($(#[tokio::test(flavor = "multi_thread")]
        async fn $case() {
            $module::$case().await;
        })+)+
    };
}

cases! {
    refused: a_bad_key, a_request_that_cannot_be_read, a_model_without_a_price, a_model_that_is_paused, not_enough_money, a_little_money, content_that_is_not_seen, overload,
        a_catalog_that_cannot_be_loaded;
    ledger: the_ledger_is_down, the_ledger_is_slow, the_database_is_locked_for_a_moment,
        the_journal_cannot_be_synced, the_disk_is_full,
        the_ledger_is_down_at_settle, the_disk_is_full_at_settle, a_handler_panics, the_clock_jumps_forward,
        the_clock_jumps_back, an_adjustment_during_calls;
    clock: the_clock_is_wrong_by_years;
    health: health_while_the_ledger_is_down, a_probe_that_fails;
    stored: an_answer_cannot_be_stored, a_conversation_cannot_be_added_to, there_is_no_room_for_an_answer;
    upstream: nobody_listens, reset_after_the_request_was_sent, the_provider_refuses, the_provider_is_busy,
        the_provider_fails_before_output, the_first_byte_is_late, a_stream_that_breaks, a_stream_without_usage,
        garbage_and_endless_lines, a_link_that_cannot_be_fetched, a_compressed_answer, the_provider_ignores_the_limit,
        hidden_reasoning_beyond_the_money;
    clients: the_client_leaves_before_the_first_byte, the_client_leaves_in_mid_stream, the_client_never_reads,
        the_client_says_nothing, a_large_body_without_money, a_stop_with_streams_open;
    repeated: the_first_is_still_running, the_first_is_finished, another_body, after_the_retention,
        a_refund_twice, a_top_up_delivered_five_times_at_once;
    runs: an_account_without_money_begins_no_run, a_balance_that_ends_between_steps, a_price_that_rose_before_a_step,
        a_step_that_its_provider_fails, a_restart_between_steps;
    room: no_room_for_the_file_of_a_step;
    speech: audio_breaks_off, speech_without_audio, audio_is_too_long, the_client_leaves_in_mid_audio, a_stop_in_mid_audio,
        the_client_listens_until_its_time_is_up;
    recordings: a_recording_breaks_off, no_room_for_a_recording, no_room_for_a_transcript, a_reply_that_is_no_transcript, a_transcript_breaks_off,
        the_client_leaves_a_transcript, a_large_transcript, a_task_of_a_recording_is_lost, the_client_leaves_a_task;
    passing: an_upload_that_passes_is_refused_at_its_end, the_client_leaves_an_upload_that_passes,
        the_provider_breaks_off_an_upload_that_passes, the_provider_answers_before_an_upload_has_passed;
    images: the_client_leaves_in_mid_picture, the_provider_dies_in_mid_picture, an_answer_with_pictures_is_too_large,
        an_answer_with_pictures_is_lost, a_task_of_pictures_is_never_over, a_stream_of_pictures_breaks,
        a_picture_cannot_be_stored, no_room_for_several_pictures, no_room_for_a_picture_by_link;
    once: a_stop_while_media_are_made, media_break_off_on_their_way, the_ledger_is_slow_over_a_picture,
        a_handler_panics_over_a_picture;
    sessions: a_session_without_money, the_handshake_of_a_session_fails, the_provider_breaks_a_session_off, the_client_leaves_a_session,
        the_money_runs_out_in_a_session, a_stop_with_sessions_open, the_provider_of_a_session_is_silent,
        the_handshake_of_a_session_hangs, a_compressed_message_in_a_session, the_client_leaves_while_it_is_written_down;
    closes: garbage_of_a_provider_ends_the_session_by_name, an_endless_frame_of_a_provider_is_cut,
        what_a_client_may_not_send_has_its_code, a_message_may_come_in_pieces, a_slow_reader_stops_its_provider,
        the_close_of_a_provider_reaches_the_client;
    limits: a_key_and_an_account_have_so_many_sessions, a_revoked_key_ends_its_sessions,
        a_session_ends_at_its_longest_when_its_response_has, a_provider_that_ignores_the_limit_is_stopped_at_the_operators_cost;
    money: usage_that_cannot_be_true_is_not_believed, a_response_that_fails_is_free_and_says_nothing_of_the_provider,
        a_session_ends_with_the_response_after_which_there_is_no_money;
    turns: money_for_one_response_answers_one_turn, nothing_reaches_who_answers_by_itself_without_a_hold,
        a_third_turn_is_paid_or_stopped_while_the_second_is, a_quiet_session_gives_its_hold_back;
    client_secrets: what_holds_for_the_key_holds_for_its_secrets, a_key_has_so_many_secrets_at_a_time,
        a_client_secret_has_expired;
    tls: plain_http_is_pointed_to_tls, a_handshake_that_does_not_end_is_ended, changed_files_are_taken_over_and_a_stream_goes_on;
    videos: a_creation_without_an_answer, a_task_fails, a_task_is_completed, the_poller_dies_before_the_commit,
        two_replicas_poll_one_task, a_replica_writes_after_its_lease, success_after_we_said_failed, the_state_goes_back,
        the_link_has_expired;
    payments: a_payment_that_nobody_told_of_is_found, an_order_whose_page_was_lost_gets_it_later,
        what_is_forged_is_refused_and_what_is_wrong_is_not_credited,
        refunds_and_disputes_take_back_and_a_debt_stops_the_account, a_payment_reported_before_its_session_is_known;
    alerts: places_that_fail_are_tried_again_and_given_up, a_slow_place_holds_up_nobody,
        a_balance_that_falls_is_sent_once_and_clears_once;
    catalog: two_operators_do_not_overwrite_each_other, a_call_keeps_its_price_when_another_catalog_is_published,
        a_catalog_whose_publisher_died_is_on_sale_at_the_next_start;
    jobs: a_job_whose_process_ended_is_interrupted;
    trial: trial_credit_is_made_up_for;
    smtp: the_mail_server_breaks_off_or_is_down, a_letter_that_is_refused_for_good_is_given_up,
        letters_go_by_starttls_with_a_password_and_again_after_a_refusal_for_now;
    mail: a_letter_whose_sender_died_is_sent_by_the_next;
    issuers: the_issuer_is_down_slow_or_endless;
    passkeys: the_counter_of_a_passkey_goes_back;
    sign_ins: the_database_is_down_at_a_sign_in;
    vectors: the_provider_dies_in_mid_vectors, the_client_leaves_in_mid_vectors, more_vectors_than_are_taken,
        a_part_of_a_list_fails, a_part_of_a_list_stays_busy, a_later_part_of_a_list_is_refused, no_room_for_vectors;
    orders: the_client_leaves_before_an_order, the_provider_dies_in_mid_order, an_order_is_too_large,
        the_client_leaves_before_a_decision, the_provider_dies_in_mid_decision, a_decision_is_too_large;
}

/// Rows of the table.
const ROWS: usize = 186;

/// Rows whose subject does not exist yet, by what stands in their last column.
const PENDING: [&str; 0] = [];

#[test]
fn every_row_has_a_case_and_every_case_a_row() {
    let page = std::fs::read_to_string("../../docs/faults.md").expect("docs/faults.md");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| step"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), ROWS, "a row was cut, or is new: then count it here");
    design::every_row_is_there(&rows.iter().filter_map(|row| row.last().copied()).collect::<Vec<_>>());
    let mut ours = BTreeSet::new();
    for row in &rows {
        let [_step, _fault, balance, log, answer, cases] = row[..] else { panic!("six columns, not {row:?}") };
        assert!(!balance.is_empty() && !log.is_empty() && !answer.is_empty(), "{row:?}");
        if PENDING.contains(&cases) {
            continue;
        }
        for case in cases.split(", ") {
            let (house, name) = case.trim_matches('`').split_once("::").unwrap_or_else(|| panic!("{row:?}"));
            assert!(["gateway", "cli", "store"].contains(&house), "{row:?}");
            if house == "gateway" {
                ours.insert(name);
            }
        }
    }
    let cases: BTreeSet<&str> = CASES.iter().copied().collect();
    assert_eq!(ours.symmetric_difference(&cases).collect::<Vec<_>>(), Vec::<&&str>::new(), "rows and cases differ");
}

/// The client was refused with this, the row says that, and the money is all there.
async fn free(house: &House, reply: Response, (status, code): (u16, &str), row: Option<(Ending, &str)>) {
    let id = reply.headers().get("x-request-id").and_then(|id| id.to_str().ok()).and_then(|id| id.parse().ok());
    let (got, error) = error_of(reply).await;
    assert_eq!((got, error["code"].as_str()), (status, Some(code)), "{error}");
    house.quiet().await;
    match (row, id) {
        (Some((ending, reason)), Some(id)) => {
            let row = house.row(id).await;
            assert_eq!((row.ending, row.reason.as_str(), row.charge.nano()), (ending, reason, 0));
        }
        (Some(_), None) => panic!("no call id in the answer"),
        (None, _) => assert_eq!(rows(house).await.len(), 0, "nothing to note"),
    }
    assert_eq!(house.available().await, FUNDED, "nothing was charged");
}

/// What a call cost is gone from the balance, and nothing else.
async fn paid(house: &House, call: CallId) -> UsageRow {
    let row = house.row(call).await;
    house.quiet().await;
    assert!(row.charge.nano() > 0 && row.charge <= row.hold, "{row:?}");
    assert_eq!(house.available().await, FUNDED - row.charge.nano());
    row
}

async fn answered(house: &House, reply: Response) -> UsageRow {
    assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap_or_default());
    let call = call_id(&reply);
    reply.bytes().await.expect("a body");
    paid(house, call).await
}

/// How many temporary files have a name in this folder: those of the spool have none.
fn temporary(folder: &Path) -> usize {
    let files = std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("read").file_name());
    files.filter(|name| name.to_string_lossy().starts_with(".tmp")).count()
}

async fn rows(house: &House) -> Vec<UsageRow> {
    house.running().app.store.usage(Some(house.account), UsagePage::default()).await.expect("rows")
}
