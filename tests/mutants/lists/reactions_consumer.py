"""Mutants of the consumer of reactions, and of their use cases."""

from __future__ import annotations

from tests.mutants.mutant import mutants_of

REACTIONS = "tests/integration/reactions"
PERSIST = f"{REACTIONS}/test_persist.py"
APPLY = f"{REACTIONS}/test_apply.py"
QUERIES = f"{REACTIONS}/test_queries.py"
HYDRATE = f"{REACTIONS}/test_hydrate.py"
OUTAGES = f"{REACTIONS}/test_outages.py"
SWEEP = f"{REACTIONS}/test_sweep.py"
REQUEST_ROWS = f"{REACTIONS}/test_request_rows.py"
LIKERS = f"{REACTIONS}/test_likers.py"
EARLIEST = f"{REACTIONS}/test_earliest.py"
MY_LISTS = f"{REACTIONS}/test_my_lists.py"
RECOVERY = f"{REACTIONS}/test_failover_recovery.py"
LOG_GATE = f"{REACTIONS}/test_log_gate.py"
REIGN_GUARD = f"{REACTIONS}/test_reign_guard.py"
BLOOM = f"{REACTIONS}/test_bloom.py"
TOMBSTONE = f"{REACTIONS}/test_tombstone.py"
MODEL = "tests/unit/reactions/test_model.py"
MESSAGES = "tests/unit/reactions/test_messages.py"
CLAIMS = "tests/integration/counters/test_claims.py"
FOLLOWS = "tests/integration/follows/test_follows_persist.py"

# Some tests, in the order of how many mutants they kill; their files follow in the lists.
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

MUTANTS = [
    *mutants_of(
        "reactions/persist.py",
        [*STORED, *ACKNOWLEDGED, REIGN_GUARD, FOLLOWS, REQUEST_ROWS, PERSIST],
        (
            "rows-before-lock",
            "    locked = counters.lock_content(cursor, targets)\n"
            "    before = mysql_reactions.read_rows(cursor, keys)\n",
            "    before = mysql_reactions.read_rows(cursor, keys)\n"
            "    locked = counters.lock_content(cursor, targets)\n",
            "Rows are read after the counters of their targets are locked.",
        ),
        (
            "unchanged-not-logged",
            "mysql_reactions.append_log(cursor, changes, commits)\n"
            "    if any(change.is_new for change in changes):",
            "if any(change.is_new for change in changes):\n"
            "        mysql_reactions.append_log(cursor, changes, commits)",
            "Each event is logged, also one that changes nothing.",
        ),
        (
            "counters-not-updated",
            "    _update_counters(cursor, owners, changes)\n",
            "",
            "The counters have the changes of the rows.",
        ),
        (
            "version-not-raised",
            "db_version + change.is_new,",
            "db_version,",
            "A commit that changes a row has the next version.",
        ),
        (
            "total-before",
            "total + change.delta,",
            "total,",
            "A commit has the total after it.",
        ),
        (
            "split-commit",
            "if commits and (commits[-1].target, commits[-1].kind) == (target, kind):",
            "if False:",
            "Two commits of a target in one transaction follow each other.",
        ),
        (
            "epoch",
            "epoch + counter.versions[kind.total]",
            "counter.versions[kind.total]",
            "Versions never repeat after a restore: the epoch is in their high bits.",
        ),
        (
            "unchanged-raises",
            "        if not change.is_new:\n            continue\n",
            "",
            "The version of a counter is raised only by commits that change a row.",
        ),
        (
            "received-not-counted",
            "if change.delta and target in owners:",
            "if False:",
            "The owner's received reactions are counted.",
        ),
        (
            "given-not-counted",
            "                if actor.change:\n",
            "                if False:\n",
            "The actor's follows are counted.",
        ),
        (
            "raised-once",
            "raised.get((target, kind.total), 0) + 1",
            "1",
            "The counter's version is raised by the number of commits.",
        ),
        (
            "postponed-lost",
            "ACKNOWLEDGEMENTS.send(Unacknowledged(commits=saved.commits))",
            "pass",
            "Commits that Redis did not accept are queued.",
        ),
        (
            "mysql-not-postponed",
            "    except (RedisDown, MysqlDown) as error:\n        ACKNOWLEDGEMENTS",
            "    except RedisDown as error:\n        ACKNOWLEDGEMENTS",
            "A batch is not saved again because MySQL failed after the commit.",
        ),
        (
            "follows-not-published",
            "    _publish_follow_changes(events)\n\n\ndef _save_overlapped",
            "\n\ndef _save_overlapped",
            "The feed gets all follows of a batch.",
        ),
        (
            "follows-of-changes",
            "if e.key.kind == FOLLOW.name",
            "if e.key.kind == FOLLOW.name and e.on",
            "The feed gets unfollows, too.",
        ),
        (
            "first-part-lost",
            "            if begun:\n                _acknowledge_or_postpone(*begun)\n            begun =",
            "            begun =",
            "The results of each part of a large batch are handled.",
        ),
        (
            "last-part-lost",
            "        if begun:\n            _acknowledge_or_postpone(*begun)\n\n\ndef _store",
            "\n\ndef _store",
            "The results of the last part of a large batch are handled.",
        ),
        (
            "gap-ignored",
            'if code == "GAP":',
            "if False:",
            "A target that missed a commit is loaded again.",
        ),
        (
            "cold-outbox-ignored",
            'elif code == "DROPPED" or (code == "COLD" and outbox_count):',
            'elif code == "DROPPED":',
            "A target that is not loaded and has an outbox is loaded.",
        ),
        (
            "cold-loaded",
            'elif code == "DROPPED" or (code == "COLD" and outbox_count):',
            'elif code in ("DROPPED", "COLD"):',
            "A target that is neither loaded nor has an outbox is left alone.",
        ),
        (
            "dropped-ignored",
            'elif code == "DROPPED" or (code == "COLD" and outbox_count):',
            'elif code == "COLD" and outbox_count:',
            "A target of another reign that missed a commit is loaded again.",
        ),
        (
            "deposed-applies",
            "    if saved.is_deposed:\n",
            "    if False:\n",
            "A consumer whose master was deposed applies nothing to it.",
        ),
        (
            "deposed-stays-connected",
            "        connections.forget_client()\n        raise MasterDeposed",
            "        raise MasterDeposed",
            "A consumer whose master was deposed connects to the current one.",
        ),
        (
            "rebuild-ignored",
            "        if rebuild:\n            request_rebuild(commit.kind, commit.target)\n        if code",
            "        if code",
            "A filter that a commit needs is built.",
        ),
        (
            "released-before-totals",
            "    results, cached = applied\n    if cached:",
            "    results, cached = applied\n"
            "    counters.release(\n"
            "        (actor, str(c.target), version)\n"
            "        for c in saved.commits\n"
            "        if c.kind.given\n"
            "        for actor, version, _ in c.rows\n"
            "        if actor in cached\n"
            "    )\n"
            "    if cached:",
            "A claim counts until the projected total includes its follow.",
        ),
        (
            "not-released",
            "        if actor in cached\n    )",
            "        if actor in cached and False\n    )",
            "A claim of a saved follow is dropped.",
        ),
        (
            "users-not-projected",
            "        counters.refresh_projections(sorted(cached))",
            "        pass",
            "The totals of users in Redis follow the commits.",
        ),
        (
            "rankings-of-all-kinds",
            'if c.kind is LIKE and c.target.type == "post"',
            'if c.target.type == "post"',
            "Only likes are ranked.",
        ),
        (
            "rankings-of-comments",
            'if c.kind is LIKE and c.target.type == "post"',
            "if c.kind is LIKE",
            "Only posts are ranked.",
        ),
        (
            "resync-any-version",
            "codes = redis_hydration.evict_all(lost)",
            "codes = redis_hydration.evict_all([(kind, target, None) for kind, target, _ in lost])",
            "A target that another consumer has loaded since is not dropped.",
        ),
        (
            "resync-moved",
            '            if code == "EVICTED"\n',
            "",
            "Only targets that were dropped are loaded again.",
        ),
        (
            "resync-redis-down",
            "        if isinstance(error, RedisDown):\n            raise\n",
            "",
            "A resync without Redis fails, so that the commits are queued.",
        ),
        (
            "resync-mysql-down",
            "        if isinstance(error, RedisDown):\n            raise\n",
            "        raise\n",
            "A resync without MySQL leaves the target to the next reader.",
        ),
        (
            "again-without-keys",
            "keys = sorted({key for message in messages for key in message.keys})",
            "keys: list[ReactionKey] = []",
            "The current rows of keys are acknowledged.",
        ),
        (
            "again-without-commits",
            "            acknowledge(mysql.run_in_transaction(read))",
            "            pass",
            "Commits that Redis did not accept are applied later.",
        ),
        (
            "again-without-owners",
            "return PersistedBatch(commits, _users_of(owners, keys), is_deposed=is_deposed)\n"
            "\n\ndef _read_current(",
            "return PersistedBatch(commits, [], is_deposed=is_deposed)\n\n\ndef _read_current(",
            "The totals of owners and actors follow later commits, too.",
        ),
        (
            "read-before-lock",
            "    locked = counters.lock_content(cursor, _targets(keys))\n"
            "    # An event of version 0 is newer than no row.\n"
            "    nothing = [ReactionEvent(key, False, 0) for key in keys]\n"
            "    unchanged = replay(mysql_reactions.read_rows(cursor, keys), nothing)",
            "    nothing = [ReactionEvent(key, False, 0) for key in keys]\n"
            "    unchanged = replay(mysql_reactions.read_rows(cursor, keys), nothing)\n"
            "    locked = counters.lock_content(cursor, _targets(keys))",
            "The current rows are as of the counter's version.",
        ),
        (
            "users-of-owners-only",
            "*(key.actor_id for key in keys if KINDS[key.kind].given)",
            "",
            "The totals of actors in Redis follow their follows.",
        ),
        (
            "lag-of-newest",
            '("max", ordered[0])',
            '("max", ordered[-1])',
            "The lag is the age of the oldest reaction of a batch.",
        ),
    ),
    *mutants_of(
        "reactions/mysql_reactions.py",
        [*STORED, *READ, LIKERS, MY_LISTS, PERSIST],
        (
            "any-predecessor",
            "WHERE first_slot = %s AND reign = %s",
            "WHERE first_slot = %s AND (reign = %s OR TRUE)",
            "A successor replaces only the reign that it succeeds.",
        ),
        (
            "log-twice",
            "INSERT IGNORE INTO reaction_log",
            "REPLACE INTO reaction_log",
            "An event is logged once, with its first change.",
        ),
        (
            "total-before",
            "{commit.total:d}",
            "{commit.total - change.delta:d}",
            "A row of the log has the total after its commit.",
        ),
        (
            "row-of-other-kind",
            "            AND r.kind = '{kind}'\n            AND r.actor_id = k.actor_id",
            "            AND r.actor_id = k.actor_id",
            "The rows of other kinds are not read.",
        ),
        (
            "older-state",
            "state = IF(VALUES(version) > reaction.version, VALUES(state), reaction.state)",
            "state = VALUES(state)",
            "An older version does not change a row.",
            "Rows are written where they are newer than the row that was read behind the lock of the"
            " counter, which all writers take.",
        ),
        (
            "version-before-state",
            "            state = IF(VALUES(version) > reaction.version, VALUES(state), reaction.state),\n",
            "            version = GREATEST(reaction.version, VALUES(version)),\n"
            "            state = IF(VALUES(version) > reaction.version, VALUES(state), reaction.state),\n",
            "The state is assigned before the version that it depends on.",
        ),
        (
            "version-not-greatest",
            "version = GREATEST(reaction.version, VALUES(version))",
            "version = VALUES(version)",
            "The version of a row never falls.",
            "Rows are written where they are newer than the row that was read behind the lock of the"
            " counter, which all writers take.",
        ),
        (
            "all-rows-written",
            "            if is_newer\n",
            "",
            "A row is written where its version is newer.",
            "Other rows are written with the state and version that they have; it costs time only.",
        ),
        (
            "snapshot-read-committed",
            "return mysql.run_in_snapshot(read)",
            "return mysql.run_in_transaction(read)",
            "The counter and the rows of a snapshot are of one instant.",
        ),
        (
            "snapshot-without-off",
            "last_version_us[index] = max(last_version_us[index], version or 0)",
            "pass",
            "The newest version of a target includes rows that are off.",
        ),
        (
            "snapshot-without-epoch",
            '            case "epoch":\n                db_version[index] += version',
            '            case "epoch":\n                pass',
            "The version of a snapshot has the epoch.",
        ),
        (
            "snapshot-complete",
            "len(newest[i]) < depth,",
            "len(newest[i]) <= depth,",
            "A snapshot with as many actors as were read may lack some.",
        ),
        (
            "snapshot-of-off",
            'select_rows(kind, target, on, "state = 1")',
            'select_rows(kind, target, on, "TRUE")',
            "A snapshot has the actors that are on.",
        ),
        (
            "snapshot-oldest",
            "ORDER BY version DESC, actor_id DESC LIMIT {depth:d}",
            "ORDER BY version, actor_id LIMIT {depth:d}",
            "A snapshot has the newest actors.",
        ),
        (
            "state-version-0",
            "{EPOCH_NOW} + COALESCE((\n                   SELECT {kind.version}",
            "0 * {EPOCH_NOW} + 0 * COALESCE((\n                   SELECT {kind.version}",
            "The state of an actor is read with the version of the counter.",
        ),
        (
            "counters-without-epoch",
            "counters[index] = total, epoch + version",
            "counters[index] = total, version",
            "The version of a counter has the epoch.",
        ),
        (
            "viewer-off",
            "              AND actor_id = {actor_id:d}\n              AND state = 1",
            "              AND actor_id = {actor_id:d}",
            "An actor who took the reaction back is off.",
        ),
        (
            "page-repeats",
            "OR actor_id {sign} {actor_id})",
            "OR actor_id {sign}= {actor_id})",
            "A page begins after the last actor of the one before it.",
        ),
        (
            "page-skips-ties",
            "OR actor_id {sign} {actor_id})",
            "OR actor_id < 0 * {actor_id})",
            "Actors of equal versions are on two pages.",
        ),
        (
            "reactors-off",
            'conditions, (sign, order) = "state = 1",',
            'conditions, (sign, order) = "TRUE",',
            "Actors that are off are not listed.",
        ),
        (
            "earliest-without-epoch",
            "SELECT 0, {EPOCH_NOW} + COALESCE((",
            "SELECT 0, 0 * {EPOCH_NOW} + COALESCE((",
            "The version of the earliest page has the epoch.",
        ),
        (
            "reacted-ties",
            "OR (target_type = %s AND target_id < %s))))",
            "OR (target_type = %s AND target_id <= %s))))",
            "A page begins after the last target of the one before it.",
        ),
        (
            "actors-off",
            "          AND actor_id > %s\n          AND state = 1",
            "          AND actor_id > %s",
            "A filter is built of the actors that are on.",
        ),
    ),
    *mutants_of(
        "reactions/persist.py",
        [LOG_GATE],
        (
            "log-gate",
            "    epoch, reigns = mysql_reactions.share_log_lock(cursor)\n",
            "    epoch, reigns = mysql_reactions.read_epoch(cursor), {}\n",
            "A transaction passes the log lock before it appends.",
        ),
    ),
    *mutants_of(
        "reactions/mysql_reactions.py",
        [LOG_GATE],
        (
            "gate-not-locked",
            "        LOCK IN SHARE MODE\n",
            "",
            "A reader of the log waits for the transactions that append to it.",
        ),
        (
            "gate-exclusive",
            "        LOCK IN SHARE MODE\n",
            "        FOR UPDATE\n",
            "Consumers do not wait for each other at the log lock.",
        ),
        (
            "reigns-without-gate",
            '        take_log_lock(cursor)\n        cursor.execute("DELETE',
            '        cursor.execute("DELETE',
            "The reigns are replaced behind all transactions that passed the log lock.",
        ),
    ),
    *mutants_of(
        "reactions/model.py",
        [MODEL, PERSIST],
        (
            "older-wins",
            "        if at_us > version_us:\n",
            "        if True:\n",
            "The newest version wins, in any order of arrival.",
        ),
        (
            "equal-wins",
            "        if at_us > version_us:\n",
            "        if at_us >= version_us:\n",
            "An event that was saved before changes nothing.",
        ),
        (
            "version-twice",
            "            elif at_us == last_us:\n                continue\n",
            "",
            "Each version of a key counts once.",
        ),
        (
            "not-split",
            "if len(state.actors) == MAX_ROWS:",
            "if False:",
            "A commit has at most 250 actors.",
        ),
        (
            "split-one-later",
            "len(state.actors) == MAX_ROWS",
            "len(state.actors) > MAX_ROWS",
            "A commit has at most 250 actors.",
        ),
        (
            "change-of-last",
            "SavedActor(actor_id, at_us, on, on - was_on, True)",
            "SavedActor(actor_id, at_us, on, change, True)",
            "The change of an actor is the sum of all events of the batch.",
        ),
        (
            "provisional-begins",
            "return min(self.sent_ms, self.deadline_ms or self.sent_ms) * 1000 + 999",
            "return min(self.sent_ms, self.deadline_ms or self.sent_ms) * 1000",
            "A provisional event is after the gate's events of its millisecond.",
        ),
        (
            "provisional-late",
            "min(self.sent_ms, self.deadline_ms or self.sent_ms)",
            "self.sent_ms",
            "An event that SQS stored after its request had failed has the time of its deadline.",
        ),
        (
            "kinds-mixed",
            "setdefault(key[:3], [])",
            "setdefault((*key[:2], 'like'), [])",
            "Kinds of one target have changes of their own.",
        ),
        (
            "order-of-arrival",
            "key=itemgetter(0, 1)",
            "key=itemgetter(0)",
            "The events of a key are replayed in the order of their versions.",
        ),
    ),
    *mutants_of(
        "reactions/react.py",
        [QUERIES, TOMBSTONE, HYDRATE, OUTAGES],
        (
            "exact-without-copy",
            "        return Outcome(on, None, None)\n    return Outcome(on, decision.total",
            "        return Outcome(on, decision.total, True)\n    return Outcome(on, decision.total",
            "A reaction that only Redis has is provisional.",
        ),
        (
            "hot-total-stays",
            '    if decision.code == "CHANGED":\n        drop_total(kind, target)\n',
            "",
            "A changed total is not served from the cache of this process.",
        ),
        (
            "not-spilled",
            "        spill(REACTIONS.name, REACTIONS.encode(event))\n        return True",
            "        return False",
            "While SQS is unavailable, an event is stored in MySQL.",
        ),
        (
            "stale-is-loaded",
            'if code in ("STALE", "INCOMPLETE")',
            'if code in ("INCOMPLETE",)',
            "A snapshot that was refused is read again.",
        ),
        (
            "incomplete-is-loaded",
            'if code in ("STALE", "INCOMPLETE")',
            'if code in ("STALE",)',
            "A hydration that lacked entries is repeated.",
        ),
        (
            "ahead-not-applied",
            '                    if code == "MORE"\n',
            "                    if False\n",
            "Commits that arrived during a hydration are applied.",
        ),
        (
            "snapshot-before-lease",
            "            outboxes = redis_hydration.read_outboxes(\n"
            "                [(k, t, lease.entries) for k, t, lease in taken]\n"
            "            )",
            "            outboxes = [[] for _ in taken]",
            "The rows of all outbox entries are read.",
        ),
        (
            "depth",
            "_depth(len(taken)),",
            "reaction_settings().recent_cap,",
            "Many cold targets read a bounded number of rows in all.",
        ),
        (
            "exists-cache-in-gate",
            "_require_live(target, lookup.find(*target, use_cache=False))",
            "_require_live(target, lookup.find(*target))",
            "A target is loaded only if it exists now.",
        ),
        (
            "cold-not-checked",
            "                _require_live(target, lookup.find(*target, use_cache=False))\n",
            "",
            "A target that does not exist is not loaded.",
        ),
        (
            "nonce-per-attempt",
            "decision = redis_gate.gate(kind, target, actor_id, on, nonce, expected)",
            "decision = redis_gate.gate("
            "kind, target, actor_id, on, secrets.token_hex(6), expected)",
            "All attempts of a request have one nonce.",
            "An attempt is followed by another one only when it wrote nothing; the repeats of one"
            " command, by its client, have its nonce.",
        ),
        (
            "provisional-of-missing",
            "        _require_live(target, lookup.find_in_mysql(*target))\n        _require_visible",
            "        _require_visible",
            "A provisional reaction needs a target that exists.",
        ),
        (
            "no-rebuild",
            "                if decision.rebuild:\n                    request_rebuild(kind, target)\n",
            "",
            "The gate's request of a build is queued.",
        ),
        (
            "one-attempt",
            "_MAX_ATTEMPTS = 5",
            "_MAX_ATTEMPTS = 1",
            "A cold target is loaded and tried again.",
        ),
        (
            "marker-not-cached",
            "                if not markers.is_cached_live(*target):\n"
            "                    markers.cache_live(*target)\n                return decision",
            "                return decision",
            "While Redis is unavailable, targets that were reacted to need no look-up.",
        ),
    ),
    *mutants_of(
        "reactions/queries.py",
        [QUERIES, TOMBSTONE, LIKERS, EARLIEST, MY_LISTS, HYDRATE, OUTAGES],
        (
            "fallback-is-exact",
            "return [Count(*pair) for pair in zip(totals, states, strict=True)], False",
            "return [Count(*pair) for pair in zip(totals, states, strict=True)], True",
            "Totals of MySQL are not exact.",
        ),
        (
            "fallback-unlimited",
            "        if not _fallback_budget.take():\n            raise\n    totals",
            "        pass\n    totals",
            "MySQL stands in for Redis within the budget.",
        ),
        (
            "hot-not-exact",
            "        if exact:\n            hot_totals.put",
            "        if True:\n            hot_totals.put",
            "Only exact totals are cached.",
        ),
        (
            "cold-is-exact",
            "return missing | loaded, None not in cached",
            "return missing | loaded, True",
            "A total of a target that another caller loads is not exact.",
        ),
        (
            "wait-unlimited",
            "    if left and not _fallback_budget.take():",
            "    if False and not _fallback_budget.take():",
            "MySQL stands in for slow loads within the budget.",
        ),
        (
            "unknown-is-off",
            "if c is None or c.viewer_state is None]",
            "if c is None]",
            "A state that Redis does not have is read from MySQL.",
        ),
        (
            "rebuild-ignored",
            "        if c and c.rebuild:\n            request_rebuild(kind, target)\n",
            "        if c and c.rebuild:\n            pass\n",
            "A build that a read requests is queued.",
        ),
        (
            "deleted-is-loaded",
            "live = [w for w in cold if existence[w[1]] is Existence.LIVE]",
            "live = list(cold)",
            "Targets that are missing or deleted are not loaded.",
        ),
        (
            "lists-unlimited",
            "    if not _list_budget.take():\n        raise ReactionListsBusy",
            "    if False:\n        raise ReactionListsBusy",
            "Lists are read from MySQL within the budget.",
        ),
        (
            "list-of-missing",
            "    require_existing(target)\n    try:\n        is_complete",
            "    try:\n        is_complete",
            "The list of a target that does not exist is not found.",
        ),
        (
            "listed-twice",
            "_paginate(newest + [r for r in older if r.actor_id not in in_redis], limit)",
            "_paginate(newest + older, limit)",
            "An actor is on a page once.",
            "A row of MySQL is at least as new as in recent, so it is not after the page that"
            " recent has.",
        ),
        (
            "short-earliest-cached",
            "if len(earliest) == EARLIEST_LENGTH:",
            "if True:",
            "A page with fewer actors than a full one is not cached.",
        ),
        (
            "ties-past",
            "return position < last if latest else position > last",
            "return position <= last if latest else position >= last",
            "A page begins after the last actor of the one before it.",
        ),
        (
            "next-page-always",
            "page[limit - 1] if len(page) > limit else None\n\n\ndef list_reacted",
            "page[limit - 1] if len(page) >= limit else None\n\n\ndef list_reacted",
            "The last page has no next one.",
        ),
        (
            "list-floor",
            "if r.version_us > floor_us and (",
            "if r.version_us >= floor_us and (",
            "The list in Redis is complete above its floor.",
            "An entry at the floor is the last one of the page that was read from MySQL; the rest"
            " of the page is read after it.",
        ),
        (
            "list-floor-of-all",
            "floor_us = newest[-1].version_us if len(newest) == LIST_LENGTH else 0",
            "floor_us = 0",
            "A list of the maximum length may lack older reactions.",
        ),
        (
            "list-lease-late",
            "        lease = redis_user_lists.take_lease(kind, actor_id)\n"
            "        newest = mysql_reactions.read_reacted(kind, actor_id, None, LIST_LENGTH)\n",
            "        newest = mysql_reactions.read_reacted(kind, actor_id, None, LIST_LENGTH)\n"
            "        lease = redis_user_lists.take_lease(kind, actor_id)\n",
            "The lease of a list is taken before its rows are read.",
        ),
    ),
    *mutants_of(
        "reactions/redis_commits.py",
        [APPLY, PERSIST],
        (
            "lists-stay",
            "applied = _apply(commits, expires_at_ms, redis.delete_commands(lists))",
            "applied = _apply(commits, expires_at_ms)",
            "The lists of the actors of a commit are dropped.",
        ),
        (
            "once",
            '    while more := [i for i, a in enumerate(applied) if a.code == "MORE"]:',
            "    while more := []:",
            "A call is repeated until all is applied.",
        ),
        (
            "rebuild-of-last",
            "rebuild = any(a.rebuild for a in (applied[i], *again))",
            "rebuild = again[-1].rebuild",
            "A build that one of several calls requests is queued.",
        ),
        (
            "groups-unbounded",
            "groups = group_by_tag(outboxes, MAX_ROWS, sizes)",
            "groups = group_by_tag(outboxes, 10**6, sizes)",
            "A call has at most 250 rows.",
        ),
        (
            "repeat-with-rows",
            "commits[i]._replace(is_new=False, rows=())",
            "commits[i]._replace(is_new=False)",
            "Repeated calls have no rows.",
        ),
    ),
    *mutants_of(
        "reactions/redis_hydration.py",
        [HYDRATE, TOMBSTONE],
        (
            "large-outbox-cut",
            'cursor = None if next_cursor in ("0", 0) else next_cursor',
            "cursor = None",
            "All entries of a large outbox are compared.",
        ),
        (
            "small-outbox-skipped",
            "if 0 < entries <= MAX_ROWS]",
            "if 0 < entries < MAX_ROWS]",
            "An outbox of 250 entries is compared.",
        ),
        (
            "one-page",
            "for number in range(max(map(len, pages), default=0)):",
            "for number in range(min(1, max(map(len, pages), default=0))):",
            "All pages of an outbox are compared.",
        ),
        (
            "tombstone-of-one-kind",
            "            for target in deleted\n            for kind in KINDS.values()\n",
            "            for target in deleted\n            for kind in list(KINDS.values())[:1]\n",
            "A deleted target refuses reactions of all kinds.",
        ),
        (
            "evict-any-version",
            '("" if db_version is None else db_version, FENCE_TTL_S)',
            '("", FENCE_TTL_S)',
            "A target is dropped only at the version that missed a commit.",
        ),
    ),
    *mutants_of(
        "reactions/sweep.py",
        [SWEEP, OUTAGES],
        (
            "backlog",
            "    elif (backlog := REACTIONS.count_backlog()) > MAX_BACKLOG:\n",
            "    elif (backlog := 0) > MAX_BACKLOG:\n",
            "Nothing is sent again while the queue has a long backlog.",
        ),
        (
            "backlog-first",
            "    spilled = _send_spilled()\n    if everything",
            "    spilled = 0\n    if everything",
            "Spilled events are sent.",
        ),
        (
            "gap",
            'if page.code == "GAP"]',
            "if False]",
            "A target that misses a commit is loaded again.",
        ),
        (
            "cold",
            'if page.code == "COLD"]',
            "if False]",
            "A target that has an outbox and is not loaded is loaded.",
        ),
        (
            "mysql-down",
            "    except MysqlDown as error:\n        record",
            "    except ZeroDivisionError as error:\n        record",
            "The sweep runs while MySQL is unavailable.",
        ),
        (
            "spilled-not-counted",
            "sent = swept.sent + spilled",
            "sent = swept.sent",
            "Spilled events count as sent.",
        ),
    ),
    *mutants_of(
        "reactions/reign_guard.py",
        [REIGN_GUARD, PERSIST, RECOVERY],
        (
            "without-redis",
            "    if masters is None:\n        return False",
            "    if masters is None:\n        return True",
            "Commits that were saved without Redis are queued.",
        ),
        (
            "unguarded",
            "    if not stored:\n        return True",
            "    if not stored:\n        return False",
            "Commits are applied while no reign is stored.",
        ),
        (
            "another-reign",
            "        if stored.get(first_slot) != predecessor:\n            return False\n",
            "",
            "A deposed master gets no commits.",
        ),
        (
            "successor-refused",
            "        if stored.get(first_slot) != predecessor:\n            return False\n",
            "        return False\n",
            "The successor of a stored master gets commits.",
        ),
        (
            "successor-not-stored",
            "        mysql_reactions.succeed_reign(cursor, first_slot, predecessor, reign)\n",
            "        pass\n",
            "The successor of a stored master stores its reign.",
        ),
    ),
    *mutants_of(
        "reactions/queues.py",
        [MESSAGES, MODEL],
        (
            "kind-of-event",
            "    require_kind(body.kind, body.target_type)\n    key =",
            "    key =",
            "An event of a kind that its target does not take is invalid.",
        ),
        (
            "protocol-of-events",
            "_unpack_event, _pack_event, protocol=PROTOCOL)",
            "_unpack_event, _pack_event)",
            "An event of another protocol waits for a consumer that knows it.",
        ),
        (
            "protocol-of-commits",
            "        _pack_unacknowledged,\n        protocol=PROTOCOL,\n",
            "        _pack_unacknowledged,\n",
            "Commits of another protocol wait for a consumer that knows it.",
        ),
        (
            "empty",
            "if not 0 < count <= _MAX_KEYS:",
            "if not count <= _MAX_KEYS:",
            "A message without rows and keys is invalid.",
        ),
        (
            "too-many",
            "if not 0 < count <= _MAX_KEYS:",
            "if not 0 < count:",
            "A message has at most 1,000 rows and keys.",
        ),
        (
            "kind-of-key",
            "        require_kind(key.kind, key.target_type)\n",
            "        pass\n",
            "A key of a kind that its target does not take is invalid.",
        ),
        (
            "kind-of-commit",
            "    require_kind(kind, target_type)\n    return Commit",
            "    return Commit",
            "A commit of a kind that its target does not take is invalid.",
        ),
        (
            "after-id-without-build",
            "    if body.after_id and not body.build:",
            "    if False:",
            "A new filter begins with the first actor.",
        ),
    ),
]
