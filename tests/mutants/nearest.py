"""The tests that find the mutants of a file soonest, in this order."""

from __future__ import annotations

from collections.abc import Sequence

REACTIONS = "tests/integration/core/reactions"
APPLY = f"{REACTIONS}/test_apply.py"
BLOOM = f"{REACTIONS}/test_bloom.py"
EARLIEST = f"{REACTIONS}/test_earliest.py"
GATE = f"{REACTIONS}/test_gate.py"
HYDRATE = f"{REACTIONS}/test_hydrate.py"
INSPECTION = f"{REACTIONS}/test_inspection.py"
LIKERS = f"{REACTIONS}/test_likers.py"
LOG_BARRIER = f"{REACTIONS}/test_log_barrier.py"
MY_LISTS = f"{REACTIONS}/test_my_lists.py"
OUTAGES = f"{REACTIONS}/test_outages.py"
PERSIST = f"{REACTIONS}/test_persist.py"
QUERIES = f"{REACTIONS}/test_queries.py"
RECOVERY = f"{REACTIONS}/test_failover_recovery.py"
TERM_GUARD = f"{REACTIONS}/test_term_guard.py"
REQUEST_ROWS = f"{REACTIONS}/test_request_rows.py"
SWEEP = f"{REACTIONS}/test_sweep.py"
TOKENS = f"{REACTIONS}/test_order_tokens.py"
TOMBSTONE = f"{REACTIONS}/test_tombstone.py"
TARGETS = "tests/integration/core/targets/test_external_targets.py"
TARGET_ROUTES = "tests/integration/core/targets/test_target_routes.py"
MESSAGES = "tests/unit/core/reactions/test_messages.py"
DECISION = "tests/unit/core/reactions/test_decision.py"
MODEL = "tests/unit/core/reactions/test_model.py"
UNREAD_RACES = "tests/integration/notifications/notifications/test_unread_races.py"
RANKINGS = "tests/integration/social/recommendations/test_rankings.py"
MODERATION = "tests/integration/social/moderation/test_moderation.py"
RECONCILIATION = "tests/integration/operate/reconciliation/test_reconciliation.py"

HOLDS = "tests/integration/core/counters/test_holds.py"
FOLLOW_HOLDS = "tests/integration/core/counters/test_follow_holds.py"
COUNTERS = "tests/integration/core/counters/test_counters.py"
FOLLOWS = "tests/integration/people/follows/test_follows_persist.py"

FLASH_SALES = "tests/integration/commerce/flash_sales"
ARCHIVE = f"{FLASH_SALES}/test_order_archive.py"
FAILOVERS = f"{FLASH_SALES}/test_sales_after_failovers.py"
LIFECYCLE = f"{FLASH_SALES}/test_order_lifecycle.py"
PHASES = f"{FLASH_SALES}/test_sale_phases.py"
RACES = f"{FLASH_SALES}/test_order_races.py"
RECOVERY_LIST = f"{FLASH_SALES}/test_recovery_list.py"
SALES = f"{FLASH_SALES}/test_flash_sales.py"
WAITLIST = f"{FLASH_SALES}/test_waitlist.py"
ORDERS = "tests/unit/commerce/flash_sales/test_voucher_orders.py"
ORDER_RETRIES = "tests/unit/commerce/flash_sales/test_order_retries.py"

ERASURE = "tests/integration/operate/accounts/test_erasure.py"
CLOSED = "tests/integration/operate/accounts/test_closed_accounts.py"
STAYS_CLOSED = f"{ERASURE}::test_a_closed_erasure_stays_closed_and_is_looked_at_once_a_day"
RETURNED = f"{ERASURE}::test_what_returns_after_the_last_pass_is_erased_within_a_day"
CHECKINS = "tests/integration/commerce/checkins/test_checkins.py"
FLIGHTS = [
    f"{CHECKINS}::test_a_flight_over_the_date_line_keeps_the_streak",
    f"{CHECKINS}::test_a_move_to_the_east_restores_no_day_that_was_missed_before",
    f"{CHECKINS}::test_only_the_first_day_after_a_move_to_the_east_keeps_the_streak",
]
CHECKIN_RULES = "tests/unit/commerce/checkins/test_checkin_rules.py"
ZONES = "tests/unit/people/users/test_zones.py"
HISTORY_LINES = "tests/unit/ops/test_history.py"
HISTORY = "tests/integration/ops/test_history.py"
RECORDS = "tests/integration/ops/test_records.py"
SORTED = "tests/unit/ops/test_sorted_records.py"
QUOTES = [
    f"{HISTORY}::test_output_of_mysql_has_no_quotes",
    f"{HISTORY}::test_a_field_that_spans_lines_is_refused_with_all_of_its_lines",
]
STORED_ONCE = f"{HISTORY}::test_a_file_is_stored_exactly_and_only_once"
GROWS = f"{HISTORY}::test_a_file_that_grows_during_its_import_is_reported"
REPEATED = f"{HISTORY}::test_lines_that_repeat_an_earlier_one_are_named"
HOSTILE = f"{RECORDS}::test_a_hostile_line_is_refused_by_its_number"
DOUBLES = f"{RECORDS}::test_the_first_of_two_records_with_one_name_is_stored"
TAKEN = f"{RECORDS}::test_an_id_or_a_user_that_is_taken_is_left_out"
REIMPORTED = f"{RECORDS}::test_an_erased_user_is_not_imported_again"
SUBJECTS = f"{RECORDS}::test_an_identity_that_cannot_sign_in_is_refused"
LEFT_OUT = f"{RECORDS}::test_records_of_what_does_not_exist_are_left_out"
UNREAD = "tests/integration/notifications/notifications/test_unread.py"
UNREAD_REPAIR = "tests/integration/notifications/notifications/test_unread_repair.py"
EVENTS_OUT = "tests/integration/core/event_log/test_events_out.py"
PARTICIPANT = "tests/unit/notifications/test_participant.py"
PUSH = "tests/integration/notifications/push/test_push.py"
SCORES = "tests/integration/social/shop_scores/test_shop_scores.py"
CLOCK_JUMPS = "tests/integration/infra/test_clock_jumps.py"
WEBHOOKS = "tests/integration/integrations/webhooks/test_webhooks.py"
AUTH = "tests/integration/people/auth"
PASSKEYS = f"{AUTH}/test_passkeys.py"
SERVER_KEYS = f"{AUTH}/test_server_keys.py"
SESSIONS = f"{AUTH}/test_sessions.py"
SIGN_IN = f"{AUTH}/test_sign_in.py"
SIGNED_SESSIONS = [
    f"{SESSIONS}::test_a_session_written_into_redis_without_a_signature_opens_nothing",
    f"{SESSIONS}::test_a_signature_belongs_to_one_token_and_one_value",
    f"{SESSIONS}::test_a_session_checked_in_the_future_is_checked_again",
    f"{SESSIONS}::test_without_secrets_manager_mysql_decides",
]

CACHE = "tests/integration/infra/test_cache.py"
PROJECTIONS = "tests/integration/infra/test_projections.py"
OUTBOX = "tests/unit/infra/test_outbox.py"
QUEUES = "tests/unit/infra/test_queues.py"
REQUEST_IDS = "tests/unit/infra/test_request_ids.py"

# Some tests, in the order of how many mutants they kill; their files follow below.
STORED = [
    f"{PERSIST}::test_a_batch_is_stored_as_rows_log_and_counters",
    f"{PERSIST}::test_a_repeated_batch_changes_nothing",
    f"{PERSIST}::test_the_version_of_a_counter_is_raised_by_every_changed_row",
    f"{PERSIST}::test_redis_gets_the_committed_version",
    f"{PERSIST}::test_two_commits_of_one_transaction_raise_the_version_twice",
    f"{PERSIST}::test_versions_of_a_new_epoch_are_above_those_of_the_last",
    f"{PERSIST}::test_a_repeated_event_keeps_its_entry_in_the_log",
]
ACKNOWLEDGED = [
    f"{PERSIST}::test_queued_commits_are_applied_in_any_order",
    f"{PERSIST}::test_acknowledging_keys_again_applies_the_present_rows",
    f"{PERSIST}::test_a_row_that_is_read_again_confirms_its_entry",
    f"{PERSIST}::test_a_commit_of_a_target_that_redis_dropped_with_an_outbox_loads_it",
    f"{PERSIST}::test_present_rows_are_as_of_the_version_of_their_counter",
    f"{PERSIST}::test_a_commit_of_a_target_without_readers_does_not_load_it",
    f"{PERSIST}::test_a_resync_needs_redis_only",
    f"{PERSIST}::test_a_batch_is_not_saved_again_because_mysql_fails_after_its_commit",
    f"{PERSIST}::test_only_likes_of_posts_are_ranked",
    f"{PERSIST}::test_all_follows_and_unfollows_of_a_batch_are_published",
    f"{HOLDS}::test_a_hold_counts_until_the_total_includes_its_follow",
    f"{APPLY}::test_a_target_that_another_consumer_loaded_is_not_dropped",
    f"{APPLY}::test_a_target_with_a_gap_is_hydrated_and_keeps_its_outbox",
    f"{APPLY}::test_a_commit_deletes_a_target_of_another_term_which_is_loaded_again",
    f"{APPLY}::test_an_eviction_without_a_filter_requests_one",
]
READ = [
    f"{PERSIST}::test_all_reads_have_the_epoch_in_their_versions",
    f"{PERSIST}::test_actors_that_are_off_count_for_versions_only",
    f"{HYDRATE}::test_a_snapshot_with_an_outbox_is_of_one_instant",
    f"{HYDRATE}::test_a_target_with_fewer_rows_than_the_cap_is_complete",
    f"{BLOOM}::test_a_filter_has_the_actors_that_are_on",
    f"{TERM_GUARD}::test_a_successor_replaces_only_the_term_that_it_succeeds",
]

OF_FILES: dict[str, Sequence[str]] = {
    "people/users/mysql_erasures.py": [STAYS_CLOSED, RETURNED, REIMPORTED],
    "commerce/checkins/daily_checkin.py": FLIGHTS,
    "cli/files.py": [HISTORY_LINES, *QUOTES, STORED_ONCE, HOSTILE],
    "social/content/import_texts.py": [TAKEN],
    "ops/history.py": [
        HISTORY_LINES,
        *QUOTES,
        REPEATED,
        f"{HISTORY}::test_the_report_compares_each_target_with_the_source",
        STORED_ONCE,
        f"{HISTORY}::test_reactions_of_an_erased_user_are_refused",
        f"{RECORDS}::test_no_time_is_in_the_future",
    ],
    "ops/import_times.py": [
        HISTORY_LINES,
        *QUOTES,
        REPEATED,
        f"{HISTORY}::test_the_report_compares_each_target_with_the_source",
        STORED_ONCE,
        f"{HISTORY}::test_reactions_of_an_erased_user_are_refused",
        f"{RECORDS}::test_no_time_is_in_the_future",
    ],
    "ops/import_progress.py": [GROWS],
    "ops/records.py": [DOUBLES, HOSTILE, REIMPORTED],
    "ops/sorted_records.py": [SORTED],
    "people/users/identities.py": ["tests/unit/people/users/test_identities.py", SUBJECTS],
    "people/users/mysql_imports.py": [TAKEN, LEFT_OUT, REIMPORTED],
    "people/users/zones.py": [ZONES, CHECKIN_RULES],
    "operate/accounts/erase.py": [RETURNED, ERASURE],
    "people/auth/request_erasure.py": [CLOSED],
    "people/users/mysql_closed.py": [CLOSED],
    "people/auth/mysql_server_keys.py": [SERVER_KEYS],
    "notifications/notifications/inspection.py": [UNREAD_REPAIR],
    "notifications/notifications/mark_read.py": [UNREAD],
    "notifications/notifications/model.py": [UNREAD],
    "notifications/notifications/mysql_recount.py": [UNREAD_REPAIR],
    "notifications/notifications/participant.py": [PARTICIPANT, UNREAD],
    "notifications/notifications/redis_store.py": [UNREAD],
    "commerce/checkins/model.py": [CHECKIN_RULES, *FLIGHTS, CHECKINS],
    "commerce/checkins/mysql_store.py": [CHECKINS],
    "people/auth/id_tokens.py": ["tests/unit/people/auth/test_id_tokens.py"],
    "people/auth/passkey_checks.py": [PASSKEYS],
    "people/auth/phone_sign_in.py": [SIGN_IN],
    "people/auth/redis_sessions.py": [*SIGNED_SESSIONS, SESSIONS],
    "people/auth/server_caller.py": [SERVER_KEYS],
    "people/auth/server_keys.py": [SERVER_KEYS],
    "people/auth/sessions.py": [*SIGNED_SESSIONS, SESSIONS],
    "social/content/mysql_review_slots.py": [SCORES],
    "social/content/mysql_store.py": [STAYS_CLOSED, RETURNED],
    "core/counters/lua/hold.lua": [HOLDS, FOLLOW_HOLDS],
    "core/counters/lua/release.lua": [HOLDS, FOLLOW_HOLDS],
    "core/counters/lua/cancel_hold.lua": [HOLDS, FOLLOW_HOLDS],
    "social/shop_scores/mysql_store.py": [SCORES],
    "core/counters/mysql_store.py": [COUNTERS, PERSIST],
    "core/counters/redis_store.py": [
        COUNTERS,
        HOLDS,
        FOLLOW_HOLDS,
        "tests/integration/people/follows/test_follows.py",
    ],
    "core/event_log/model.py": [EVENTS_OUT],
    "core/event_log/mysql_append.py": [EVENTS_OUT],
    "core/event_log/mysql_events.py": [EVENTS_OUT],
    "commerce/flash_sales/cancel_order.py": [WAITLIST],
    "commerce/flash_sales/load_sale.py": [WAITLIST],
    "commerce/flash_sales/lua/confirm.lua": [SALES, LIFECYCLE, RECOVERY_LIST, WAITLIST],
    "commerce/flash_sales/lua/join.lua": [WAITLIST],
    "commerce/flash_sales/lua/leave.lua": [WAITLIST],
    "commerce/flash_sales/lua/load.lua": [SALES],
    "commerce/flash_sales/lua/offer.inc.lua": [WAITLIST, PHASES, LIFECYCLE],
    "commerce/flash_sales/lua/open.lua": [PHASES, SALES],
    "commerce/flash_sales/lua/overdue.lua": [RECOVERY_LIST],
    "commerce/flash_sales/lua/recover.lua": [RECOVERY_LIST],
    "commerce/flash_sales/lua/term.inc.lua": [PHASES, WAITLIST, FAILOVERS],
    "commerce/flash_sales/lua/release.lua": [SALES, LIFECYCLE, RECOVERY_LIST, WAITLIST],
    "commerce/flash_sales/lua/reserve.lua": [SALES, WAITLIST, LIFECYCLE],
    "commerce/flash_sales/lua/withdraw.lua": [PHASES, SALES],
    "commerce/flash_sales/model.py": [ORDERS, SALES],
    "commerce/flash_sales/mysql_archive.py": [ARCHIVE],
    "commerce/flash_sales/mysql_orders.py": [SALES, LIFECYCLE, ARCHIVE],
    "commerce/flash_sales/persist.py": [SALES, RACES, LIFECYCLE],
    "commerce/flash_sales/recover_orders.py": [RECOVERY_LIST, SALES, LIFECYCLE, WAITLIST],
    "commerce/flash_sales/waitlist.py": [WAITLIST],
    "infra/derived/outbox.py": [OUTBOX, SWEEP],
    "infra/derived/projections.py": [PROJECTIONS, COUNTERS],
    "infra/queues/processor.py": [QUEUES, REQUEST_IDS],
    "infra/queues/retries.py": [QUEUES, ORDER_RETRIES],
    "infra/redis/lua/confirm_sweep.lua": [SWEEP, OUTBOX],
    "infra/redis/lua/drop.lua": [CACHE],
    "infra/redis/lua/outbox.inc.lua": [SWEEP, RECOVERY],
    "infra/redis/lua/project.lua": [PROJECTIONS, COUNTERS],
    "infra/redis/lua/store_read.lua": [PROJECTIONS, COUNTERS],
    "core/reactions/failover_recovery.py": [RECOVERY, TERM_GUARD],
    "notifications/push/announce.py": [PUSH],
    "notifications/push/mysql_store.py": [PUSH],
    "core/reactions/acknowledgement.py": [*STORED, *ACKNOWLEDGED, TERM_GUARD, FOLLOWS, PERSIST],
    "core/reactions/hydration.py": [HYDRATE, QUERIES, TOMBSTONE, OUTAGES],
    "core/reactions/lua/apply.lua": [APPLY, HYDRATE, EARLIEST],
    "core/reactions/lua/begin_bloom.lua": [BLOOM, GATE],
    "core/reactions/lua/cache_earliest.lua": [EARLIEST],
    "core/reactions/lua/commits.inc.lua": [APPLY, GATE, BLOOM, HYDRATE, EARLIEST],
    "core/reactions/lua/earliest.inc.lua": [EARLIEST],
    "core/reactions/lua/evict.lua": [APPLY, HYDRATE],
    "core/reactions/lua/fill_bloom.lua": [BLOOM, GATE],
    "core/reactions/lua/fill_list.lua": [APPLY, MY_LISTS],
    "core/reactions/lua/find_denied.lua": [INSPECTION],
    "core/reactions/lua/gate.lua": [GATE, BLOOM, TOKENS],
    "core/reactions/lua/hydrate.lua": [HYDRATE, GATE, TOMBSTONE],
    "core/reactions/lua/idle.inc.lua": [GATE, APPLY, BLOOM],
    "core/reactions/lua/inspect_target.lua": [INSPECTION],
    "core/reactions/lua/lease_hydration.lua": [HYDRATE],
    "core/reactions/lua/meta.inc.lua": [GATE, APPLY, HYDRATE],
    "core/reactions/lua/page.lua": [LIKERS, EARLIEST],
    "core/reactions/lua/page_ranking.lua": [RANKINGS],
    "core/reactions/lua/project_ranking.lua": [RANKINGS],
    "core/reactions/lua/read.lua": [GATE, BLOOM, HYDRATE],
    "core/reactions/lua/rebase.lua": [HYDRATE],
    "core/reactions/lua/rebuild.inc.lua": [BLOOM, APPLY],
    "core/reactions/lua/record_heads.lua": [RECOVERY],
    "core/reactions/lua/set_visibility.lua": [TOMBSTONE, MODERATION],
    "core/reactions/lua/state.inc.lua": [GATE, BLOOM],
    "core/reactions/lua/swap_ranking.lua": [RANKINGS],
    "core/reactions/lua/sweep.lua": [SWEEP, RECOVERY],
    "core/reactions/lua/tombstone.lua": [TOMBSTONE],
    "core/reactions/model.py": [MODEL, PERSIST],
    "core/reactions/mysql_failover_progress.py": [RECOVERY],
    "core/reactions/mysql_log.py": [*STORED, LOG_BARRIER, TERM_GUARD, RECOVERY],
    "core/reactions/mysql_rows.py": [*STORED, *READ, LIKERS, MY_LISTS, PERSIST, RECOVERY],
    "core/reactions/mysql_snapshots.py": [*READ, HYDRATE, PERSIST, RECOVERY],
    "core/reactions/persist.py": [
        DECISION,
        *STORED,
        *ACKNOWLEDGED,
        TERM_GUARD,
        FOLLOWS,
        REQUEST_ROWS,
        PERSIST,
        UNREAD,
    ],
    "core/reactions/queries.py": [QUERIES, TOMBSTONE, LIKERS, EARLIEST, MY_LISTS, HYDRATE, OUTAGES],
    "core/reactions/queues.py": [MESSAGES, MODEL],
    "core/reactions/erasure.py": [TARGET_ROUTES],
    "core/targets/external_targets.py": [TARGETS, TARGET_ROUTES],
    "core/targets/target_ids.py": [TARGETS, TARGET_ROUTES],
    "core/reactions/react.py": [QUERIES, TOMBSTONE, HYDRATE, OUTAGES],
    "core/reactions/redis_commits.py": [APPLY, PERSIST],
    "core/reactions/redis_hydration.py": [HYDRATE, TOMBSTONE],
    "core/reactions/term_guard.py": [TERM_GUARD, PERSIST, RECOVERY],
    "core/reactions/sweep.py": [SWEEP, OUTAGES],
    "people/users/mysql_users.py": [RETURNED, ERASURE],
    "integrations/webhooks/dispatch_events.py": [WEBHOOKS],
    "integrations/webhooks/model.py": [WEBHOOKS],
    "integrations/webhooks/mysql_webhooks.py": [WEBHOOKS],
}

OF_MUTANTS: dict[str, Sequence[str]] = {
    "accounts/erase/one-stops-all": [f"{ERASURE}::test_a_failed_erasure_does_not_stop_the_others"],
    "auth/mysql-server-keys/ended-counts": [
        f"{SERVER_KEYS}::test_two_keys_of_a_name_are_valid_at_a_time"
    ],
    "auth/mysql-server-keys/too-many": [
        f"{SERVER_KEYS}::test_two_of_the_first_keys_of_a_name_that_are_made_at_once_are_valid"
    ],
    "notifications/inspection/not-compared": [
        f"{UNREAD_REPAIR}::test_a_wrong_unread_in_redis_is_found_and_dropped"
    ],
    "notifications/mark-read/later-version": [
        f"{UNREAD}::test_a_sequence_above_the_unread_and_one_of_another_epoch_mark_nothing"
    ],
    "notifications/mark-read/not-left": [
        f"{UNREAD}::test_a_mark_counts_no_more_rows_than_its_bound"
    ],
    "notifications/mark-read/unbounded-count": [
        f"{UNREAD}::test_a_mark_counts_no_more_rows_than_its_bound"
    ],
    "notifications/model/overtaken-not-counted": [
        f"{UNREAD}::test_an_older_mark_of_another_device_reads_what_it_displayed"
    ],
    "notifications/redis-store/created": [
        f"{UNREAD}::test_neither_a_consumer_nor_a_mark_stores_a_unread_that_no_reader_has_asked_for"
    ],
    "content/mysql-review-slots/left-over-stays": [
        f"{SCORES}::test_a_wrong_slot_of_a_review_is_found_and_repaired"
    ],
    "content/mysql-review-slots/missing-not-found": [
        f"{SCORES}::test_a_wrong_slot_of_a_review_is_found_and_repaired"
    ],
    "shop-scores/mysql-store/first-not-added": [
        f"{SCORES}::test_two_first_reviews_at_once_are_counted_twice"
    ],
    "counters/mysql-store/correct-adds": [RECONCILIATION],
    "counters/mysql-store/returned-follower": [RETURNED],
    "event-log/mysql-events/later-claim": [CLOCK_JUMPS],
    "flash-sales/cancel-order/row-stays": [
        f"{WAITLIST}::test_a_buyer_whose_accepted_offer_was_cancelled_waits_no_more"
    ],
    "flash-sales/load-sale/left-joins": [
        f"{WAITLIST}::test_a_buyer_who_leaves_while_redis_reads_the_waitlist_again_waits_no_more"
    ],
    "flash-sales/load-sale/rejoined-removed": [
        f"{WAITLIST}::test_a_buyer_who_joins_while_absent_buyers_are_removed_keeps_the_position"
    ],
    "flash-sales/mysql-archive/not-locked": [
        f"{ARCHIVE}::test_an_order_is_locked_from_its_comparison_until_it_is_deleted"
    ],
    "flash-sales/open/drain-of-later-clock": [CLOCK_JUMPS],
    "flash-sales/overdue/later-entry": [CLOCK_JUMPS],
    "flash-sales/recover-orders/filter": ["tests/integration/api/test_unknown_ids.py"],
    "flash-sales/reserve/later-clock": [CLOCK_JUMPS],
    "flash-sales/waitlist/ended-offer-last": [
        f"{WAITLIST}::test_the_row_of_an_ended_offer_is_deleted_before_its_unit_returns"
    ],
    "flash-sales/waitlist/holders-wait": [
        f"{WAITLIST}::test_the_recovery_deletes_the_row_of_a_buyer_whose_order_succeeded"
    ],
    "flash-sales/waitlist/row-not-read-again": [
        f"{WAITLIST}::test_a_buyer_who_leaves_on_one_device_and_joins_on_another_waits_in_both_stores_or_none"
    ],
    "infra/projections/replica-misses": [PROJECTIONS],
    "push/announce/due-later": [
        f"{PUSH}::test_a_notify_is_due_before_its_message_arrives_and_after_it_was_sent"
    ],
    "push/announce/refused-lost": [f"{PUSH}::test_what_sqs_refuses_is_announced_by_the_sweeper"],
    "push/announce/stored-before-sent": [
        f"{PUSH}::test_a_notify_is_due_before_its_message_arrives_and_after_it_was_sent"
    ],
    "push/mysql-store/all-on": [f"{PUSH}::test_a_kind_that_is_off_is_listed_and_not_pushed"],
    "push/mysql-store/later-due": [CLOCK_JUMPS],
    "reactions/gate/hidden": [MODERATION],
    "reactions/gate/hidden-from-author": [MODERATION],
    "reactions/gate/hidden-unlike": [MODERATION],
    "reactions/mysql-log/barrier-exclusive": [LOG_BARRIER],
    "reactions/mysql-log/known-epoch": [RECOVERY],
    "reactions/mysql-log/barrier-not-locked": [LOG_BARRIER],
    "reactions/mysql-log/terms-without-barrier": [LOG_BARRIER],
    "reactions/mysql-rows/removed-like": [STAYS_CLOSED],
    "reactions/mysql-rows/returned-like": [RETURNED],
    "reactions/persist/log-gate": [LOG_BARRIER],
    "reactions/persist/owners-first": [UNREAD_RACES],
    "users/mysql-users/user-last": [
        f"{ERASURE}::test_a_login_that_is_added_during_a_deletion_is_of_no_missing_user"
    ],
}
"""Mutants that other tests find sooner than the tests of their file."""
