"""The tests that find the mutants of a file soonest, in this order."""

from __future__ import annotations

from collections.abc import Sequence

REACTIONS = "tests/integration/reactions"
APPLY = f"{REACTIONS}/test_apply.py"
BLOOM = f"{REACTIONS}/test_bloom.py"
EARLIEST = f"{REACTIONS}/test_earliest.py"
GATE = f"{REACTIONS}/test_gate.py"
HYDRATE = f"{REACTIONS}/test_hydrate.py"
INSPECTION = f"{REACTIONS}/test_inspection.py"
LIKERS = f"{REACTIONS}/test_likers.py"
LOG_GATE = f"{REACTIONS}/test_log_gate.py"
MY_LISTS = f"{REACTIONS}/test_my_lists.py"
OUTAGES = f"{REACTIONS}/test_outages.py"
PERSIST = f"{REACTIONS}/test_persist.py"
QUERIES = f"{REACTIONS}/test_queries.py"
RECOVERY = f"{REACTIONS}/test_failover_recovery.py"
REIGN_GUARD = f"{REACTIONS}/test_reign_guard.py"
REQUEST_ROWS = f"{REACTIONS}/test_request_rows.py"
SWEEP = f"{REACTIONS}/test_sweep.py"
TOKENS = f"{REACTIONS}/test_order_tokens.py"
TOMBSTONE = f"{REACTIONS}/test_tombstone.py"
MESSAGES = "tests/unit/reactions/test_messages.py"
MODEL = "tests/unit/reactions/test_model.py"
RANKINGS = "tests/integration/recommendations/test_rankings.py"
MODERATION = "tests/integration/moderation/test_moderation.py"
RECONCILIATION = "tests/integration/reconciliation/test_reconciliation.py"

CLAIMS = "tests/integration/counters/test_claims.py"
FOLLOW_CLAIMS = "tests/integration/counters/test_follow_claims.py"
COUNTERS = "tests/integration/counters/test_counters.py"
FOLLOWS = "tests/integration/follows/test_follows_persist.py"

FLASH_SALES = "tests/integration/flash_sales"
ARCHIVE = f"{FLASH_SALES}/test_order_archive.py"
FAILOVERS = f"{FLASH_SALES}/test_sales_after_failovers.py"
LIFECYCLE = f"{FLASH_SALES}/test_order_lifecycle.py"
PHASES = f"{FLASH_SALES}/test_sale_phases.py"
RACES = f"{FLASH_SALES}/test_order_races.py"
RECOVERY_LIST = f"{FLASH_SALES}/test_recovery_list.py"
SALES = f"{FLASH_SALES}/test_flash_sales.py"
WAITLIST = f"{FLASH_SALES}/test_waitlist.py"
ORDERS = "tests/unit/flash_sales/test_voucher_orders.py"
ORDER_RETRIES = "tests/unit/flash_sales/test_order_retries.py"

AUTH = "tests/integration/auth"
PASSKEYS = f"{AUTH}/test_passkeys.py"
SERVER_KEYS = f"{AUTH}/test_server_keys.py"
SESSIONS = f"{AUTH}/test_sessions.py"
SIGN_IN = f"{AUTH}/test_sign_in.py"
SIGNED_SESSIONS = [
    f"{SESSIONS}::test_a_session_written_into_redis_without_a_signature_opens_nothing",
    f"{SESSIONS}::test_a_signature_belongs_to_one_token_and_one_value",
    f"{SESSIONS}::test_a_session_checked_in_the_future_is_checked_again",
    f"{SESSIONS}::test_a_session_that_the_version_before_cached_is_read_from_mysql",
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
    f"{CLAIMS}::test_a_claim_counts_until_the_total_includes_its_follow",
    f"{APPLY}::test_a_target_that_another_consumer_loaded_is_not_dropped",
    f"{APPLY}::test_a_target_with_a_gap_is_hydrated_and_keeps_its_outbox",
    f"{APPLY}::test_a_commit_deletes_a_target_of_another_reign_which_is_loaded_again",
    f"{APPLY}::test_an_eviction_without_a_filter_requests_one",
]
READ = [
    f"{PERSIST}::test_all_reads_have_the_epoch_in_their_versions",
    f"{PERSIST}::test_actors_that_are_off_count_for_versions_only",
    f"{HYDRATE}::test_a_snapshot_with_an_outbox_is_of_one_instant",
    f"{HYDRATE}::test_a_target_with_fewer_rows_than_the_cap_is_complete",
    f"{BLOOM}::test_a_filter_has_the_actors_that_are_on",
    f"{REIGN_GUARD}::test_a_successor_replaces_only_the_reign_that_it_succeeds",
]

OF_FILES: dict[str, Sequence[str]] = {
    "auth/id_tokens.py": ["tests/unit/auth/test_id_tokens.py"],
    "auth/passkey_checks.py": [PASSKEYS],
    "auth/phone_sign_in.py": [SIGN_IN],
    "auth/redis_sessions.py": [*SIGNED_SESSIONS, SESSIONS],
    "auth/server_caller.py": [SERVER_KEYS],
    "auth/server_keys.py": [SERVER_KEYS],
    "auth/sessions.py": [*SIGNED_SESSIONS, SESSIONS],
    "counters/lua/claim.lua": [CLAIMS, FOLLOW_CLAIMS],
    "counters/lua/release.lua": [CLAIMS, FOLLOW_CLAIMS],
    "counters/lua/unclaim.lua": [CLAIMS, FOLLOW_CLAIMS],
    "counters/mysql_store.py": [COUNTERS, PERSIST],
    "counters/redis_store.py": [
        COUNTERS,
        CLAIMS,
        FOLLOW_CLAIMS,
        "tests/integration/follows/test_follows.py",
    ],
    "flash_sales/lua/confirm.lua": [SALES, LIFECYCLE, RECOVERY_LIST, WAITLIST],
    "flash_sales/lua/join.lua": [WAITLIST],
    "flash_sales/lua/leave.lua": [WAITLIST],
    "flash_sales/lua/load.lua": [SALES],
    "flash_sales/lua/offer.inc.lua": [WAITLIST, PHASES, LIFECYCLE],
    "flash_sales/lua/open.lua": [PHASES, SALES],
    "flash_sales/lua/overdue.lua": [RECOVERY_LIST],
    "flash_sales/lua/recover.lua": [RECOVERY_LIST],
    "flash_sales/lua/reign.inc.lua": [PHASES, WAITLIST, FAILOVERS],
    "flash_sales/lua/release.lua": [SALES, LIFECYCLE, RECOVERY_LIST, WAITLIST],
    "flash_sales/lua/reserve.lua": [SALES, WAITLIST, LIFECYCLE],
    "flash_sales/lua/withdraw.lua": [PHASES, SALES],
    "flash_sales/model.py": [ORDERS, SALES],
    "flash_sales/mysql_orders.py": [SALES, LIFECYCLE, ARCHIVE],
    "flash_sales/persist.py": [SALES, RACES, LIFECYCLE],
    "flash_sales/recover_orders.py": [RECOVERY_LIST, SALES, LIFECYCLE, WAITLIST],
    "infra/derived/outbox.py": [OUTBOX, SWEEP],
    "infra/derived/projections.py": [PROJECTIONS, COUNTERS],
    "infra/queues/processor.py": [QUEUES, REQUEST_IDS],
    "infra/queues/retries.py": [QUEUES, ORDER_RETRIES],
    "infra/redis/lua/confirm_sweep.lua": [SWEEP, OUTBOX],
    "infra/redis/lua/drop.lua": [CACHE],
    "infra/redis/lua/outbox.inc.lua": [SWEEP, RECOVERY],
    "infra/redis/lua/project.lua": [PROJECTIONS, COUNTERS],
    "infra/redis/lua/store_read.lua": [PROJECTIONS, COUNTERS],
    "reactions/lua/apply.lua": [APPLY, HYDRATE, EARLIEST],
    "reactions/lua/begin_bloom.lua": [BLOOM, GATE],
    "reactions/lua/cache_earliest.lua": [EARLIEST],
    "reactions/lua/commits.inc.lua": [APPLY, GATE, BLOOM, HYDRATE, EARLIEST],
    "reactions/lua/earliest.inc.lua": [EARLIEST],
    "reactions/lua/evict.lua": [APPLY, HYDRATE],
    "reactions/lua/fill_bloom.lua": [BLOOM, GATE],
    "reactions/lua/fill_list.lua": [APPLY, MY_LISTS],
    "reactions/lua/find_denied.lua": [INSPECTION],
    "reactions/lua/gate.lua": [GATE, BLOOM, TOKENS],
    "reactions/lua/hydrate.lua": [HYDRATE, GATE, TOMBSTONE],
    "reactions/lua/idle.inc.lua": [GATE, APPLY, BLOOM],
    "reactions/lua/inspect_target.lua": [INSPECTION],
    "reactions/lua/lease_hydration.lua": [HYDRATE],
    "reactions/lua/meta.inc.lua": [GATE, APPLY, HYDRATE],
    "reactions/lua/page.lua": [LIKERS, EARLIEST],
    "reactions/lua/page_ranking.lua": [RANKINGS],
    "reactions/lua/project_ranking.lua": [RANKINGS],
    "reactions/lua/read.lua": [GATE, BLOOM, HYDRATE],
    "reactions/lua/rebase.lua": [HYDRATE],
    "reactions/lua/rebuild.inc.lua": [BLOOM, APPLY],
    "reactions/lua/set_visibility.lua": [TOMBSTONE, MODERATION],
    "reactions/lua/state.inc.lua": [GATE, BLOOM],
    "reactions/lua/swap_ranking.lua": [RANKINGS],
    "reactions/lua/sweep.lua": [SWEEP, RECOVERY],
    "reactions/lua/tombstone.lua": [TOMBSTONE],
    "reactions/model.py": [MODEL, PERSIST],
    "reactions/mysql_reactions.py": [*STORED, *READ, LIKERS, MY_LISTS, PERSIST, RECOVERY],
    "reactions/persist.py": [*STORED, *ACKNOWLEDGED, REIGN_GUARD, FOLLOWS, REQUEST_ROWS, PERSIST],
    "reactions/queries.py": [QUERIES, TOMBSTONE, LIKERS, EARLIEST, MY_LISTS, HYDRATE, OUTAGES],
    "reactions/queues.py": [MESSAGES, MODEL],
    "reactions/react.py": [QUERIES, TOMBSTONE, HYDRATE, OUTAGES],
    "reactions/redis_commits.py": [APPLY, PERSIST],
    "reactions/redis_hydration.py": [HYDRATE, TOMBSTONE],
    "reactions/reign_guard.py": [REIGN_GUARD, PERSIST, RECOVERY],
    "reactions/sweep.py": [SWEEP, OUTAGES],
}

OF_MUTANTS: dict[str, Sequence[str]] = {
    "counters/mysql-store/correct-adds": [RECONCILIATION],
    "flash-sales/recover-orders/filter": ["tests/integration/api/test_unknown_ids.py"],
    "infra/projections/replica-misses": [PROJECTIONS],
    "reactions/gate/hidden": [MODERATION],
    "reactions/gate/hidden-unlike": [MODERATION],
    "reactions/gate/hidden-from-author": [MODERATION],
    "reactions/mysql-reactions/gate-not-locked": [LOG_GATE],
    "reactions/mysql-reactions/gate-exclusive": [LOG_GATE],
    "reactions/mysql-reactions/reigns-without-gate": [LOG_GATE],
    "reactions/persist/log-gate": [LOG_GATE],
}
"""Mutants that other tests find sooner than the tests of their file."""
