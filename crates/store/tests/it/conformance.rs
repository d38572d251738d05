//! One suite, both engines. The PostgreSQL half uses the server named by `TOLLGATE_TEST_PG`, or
//! starts its own.

use tollgate_store::testing::{PostgresServer, make_database};

use crate::common::House;

macro_rules! suite {
    ($($case:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $case() {
                crate::cases::$case(super::House::open("sqlite").await).await;
            })*
        }

        async fn on_postgres(server: &Server) {
            $(
                eprintln!("case {}", stringify!($case));
                Box::pin(async { crate::cases::$case(House::open(&server.database(stringify!($case)).await).await).await }).await;
            )*
        }
    };
}

suite!(
    audits_beside_calls_find_nothing,
    an_alert_is_written_once_with_what_is_to_be_sent,
    a_silenced_rule_says_nothing_until_then,
    alerts_have_bounds,
    what_rules_measure,
    a_low_balance_is_noticed_once_and_not_more_than_thrice_a_day,
    orders_of_an_account_have_a_number,
    an_order_is_credited_once,
    what_was_refunded_is_taken_back,
    news_of_payments_are_one_workers_at_a_time,
    a_code_is_good_once,
    codes_end_and_are_revoked,
    statements_add_up,
    the_file_of_an_export_is_seen_once_it_is_whole,
    files_of_exports_have_a_bound_and_an_end,
    settle_below_the_hold,
    void_gives_all_back,
    charge_above_the_hold_is_extended_then_written_off,
    an_open_hold_grows,
    an_extension_obeys_the_rules_of_a_hold,
    many_extensions_at_once_never_overspend,
    a_hold_takes_what_there_is,
    an_extension_takes_what_there_is,
    a_hold_takes_what_its_limits_leave,
    many_at_once_share_what_there_is,
    what_is_above_the_most_is_written_off,
    a_large_group_grants_and_writes_off_alike,
    a_hold_that_does_not_fit_is_refused,
    a_close_happens_once,
    a_key_cap_is_exact,
    many_at_once_never_overspend,
    many_kinds_in_one_group,
    a_large_group_keeps_limits,
    stored_replies_of_an_account_have_a_bound,
    a_large_batch_is_stored_whole,
    credits_happen_once,
    refunds_go_back_once_and_within_the_charge,
    idempotency_keys,
    what_was_charged_or_answered_uses_its_key_up,
    the_sweep_resolves_holds_past_their_time,
    the_usage_log_is_paged_newest_first,
    accounts_and_keys,
    admin_keys_are_hashes_with_a_log,
    the_newest_move_says_how_far_a_workflow_is,
    a_run_is_one_workers_at_a_time,
    a_run_is_not_put_off_by_a_clock_that_is_set_back,
    a_suspended_account_gets_no_hold_and_ends_what_runs,
    an_account_is_in_the_groups_it_is_in,
    a_key_is_changed_and_everybody_hears_of_it,
    a_pause_of_a_provider_is_not_one_of_a_model,
    a_client_secret_stands_for_its_key_until_it_expires,
    client_secrets_have_a_number,
    margins_are_added_up_by_day_model_and_route,
    usage_is_added_up_with_its_rows,
    rows_from_before_there_were_sums_are_added_once,
    series_in_any_zone_are_the_totals_and_the_ledger,
    no_answer_changes_when_days_are_folded,
    answers_are_exact_while_calls_end,
    a_question_that_reads_too_much_is_refused,
    route_health_is_added_up_over_quarters,
    route_health_of_thousands_of_routes_is_added_in_parts,
    probes_are_added_beside_calls,
    a_model_is_probed_by_one_at_a_time,
    a_day_of_probes_has_a_bound,
    a_client_secret_may_have_a_number_of_uses,
    social_pauses_are_rows,
    a_social_day_is_exact,
    a_social_day_is_taken_and_given_back_at_once,
    vain_calls_are_remembered_while_they_matter,
    turns_on_a_route_are_shared,
    a_response_is_stored_once_for_one_account,
    an_id_that_cannot_be_is_not_found,
    responses_form_a_tree,
    responses_are_forgotten_in_time,
    a_conversation_grows_in_order,
    calls_that_say_items_of_one_id_lose_none,
    an_item_is_found_in_any_conversation,
    what_is_stored_is_counted_exactly,
    an_account_stores_within_its_quota,
    many_at_once_store_within_the_quota,
    all_accounts_together_store_within_a_bound,
    refused_calls_leave_a_bounded_number_of_rows,
    a_restart_keeps_everything,
    trial_credit_expires,
    expiry_never_takes_what_is_held,
    a_hold_needs_no_sweep_to_see_what_has_expired,
    corrections_of_credit_that_expires,
    limits_by_day_and_month,
    limits_of_an_account_and_in_total,
    an_extension_counts_on_the_day_it_is_made,
    a_clock_set_back_opens_no_day_again,
    a_refund_gives_back_to_the_limit_for_all_time_only,
    a_new_limit_is_in_force_with_the_next_call,
    limits_and_expiry_survive_a_restart,
    a_price_from_before_the_first_top_up_is_computed_again,
    only_money_that_was_paid_is_a_top_up,
    a_charge_above_its_hold_says_which_credit_it_took,
    many_at_once_keep_the_limit_of_the_day,
    changes_of_balance_keep_who_and_why,
    a_rich_account_is_held_like_a_poor_one,
    revoking_a_key_moves_no_money,
    a_receipt_proves_the_charge,
    a_receipt_tells_what_was_free_written_off_and_refunded,
    keys_of_receipts_are_made_once_and_rotate,
    secrets_are_known_by_their_names,
    the_entries_of_a_call_tell_all_its_movements,
    a_balance_has_a_bound,
    a_refund_into_a_full_account_changes_nothing,
    limits_of_spending_have_a_bound,
    a_clock_that_jumps_takes_no_credit_and_moves_no_day,
    a_start_under_a_wrong_clock_is_healed_by_the_next,
    a_clock_put_right_dates_no_account_back,
    a_wrong_clock_put_right_while_running_is_followed,
    credit_that_ended_while_off_lapses_when_it_is_certain,
    nothing_is_forgotten_by_a_time_that_is_not_certain,
    a_wish_is_answered_as_the_hold_would_be,
    a_task_lives_and_is_paid_once,
    a_failed_task_is_free_and_final,
    a_stale_fence_changes_nothing,
    whoever_looks_at_a_task_takes_it_early,
    a_creation_without_an_answer_is_found_by_others,
    a_task_given_up_costs_the_operator,
    a_task_costs_its_hold_at_most,
    an_estimate_is_counted_where_it_is_paid,
    a_key_leads_to_the_same_task,
    neither_a_restart_nor_a_sweep_ends_a_task,
    tasks_are_paged_and_hidden,
    a_webhook_is_written_with_the_end_and_sent_by_one,
    webhooks_are_taken_of_all_accounts,
    many_takers_share_what_is_due,
    tasks_of_a_busy_provider_are_left_for_later,
    turns_at_a_provider_are_even_and_shared,
    an_account_names_where_it_is_notified,
    a_task_keeps_where_it_was_sent,
    names_at_providers_are_known_and_the_nameless_are_listed,
    a_name_at_a_provider_is_one_tasks_for_ever,
    of_many_who_come_to_one_name_one_has_it,
    what_a_provider_said_of_a_task_is_stored,
    a_quiet_task_is_taken_by_nobody_before_it_is_due,
);

enum Server {
    Given(String),
    Own(PostgresServer, #[expect(dead_code, reason = "removes the directory when dropped")] tempfile::TempDir),
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "the test run says where its server is")]
    fn find() -> Self {
        if let Ok(url) = std::env::var("TOLLGATE_TEST_PG") {
            return Self::Given(url);
        }
        let dir = tempfile::tempdir().expect("a temporary directory");
        Self::Own(PostgresServer::start(dir.path()).expect("a PostgreSQL server"), dir)
    }

    async fn database(&self, name: &str) -> String {
        let name = format!("{name}_{}", std::process::id());
        match self {
            Self::Own(server, _) => server.database(&name).await.expect("a database"),
            Self::Given(url) => {
                make_database(url, &name).await.expect("a database");
                let (server, _) = url.rsplit_once('/').expect("the address names a database");
                format!("{server}/{name}")
            }
        }
    }
}

/// One server for the whole suite: making one takes longer than running it.
#[tokio::test(flavor = "multi_thread")]
async fn postgres() {
    on_postgres(&Server::find()).await;
}
