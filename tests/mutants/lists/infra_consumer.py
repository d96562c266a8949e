"""Mutants of the consumer runtime, of outboxes and of projections."""

from __future__ import annotations

from tests.mutants.mutant import mutants_of

QUEUES = "tests/unit/infra/test_queues.py"
OUTBOX = "tests/unit/infra/test_outbox.py"
CACHE = "tests/integration/infra/test_cache.py"
PROJECTIONS = "tests/integration/infra/test_projections.py"
SWEEP = "tests/integration/reactions/test_sweep.py"
COUNTERS = "tests/integration/counters/test_counters.py"
ORDER_RETRIES = "tests/unit/flash_sales/test_order_retries.py"
REQUEST_IDS = "tests/unit/infra/test_request_ids.py"

MUTANTS = [
    *mutants_of(
        "infra/queues/processor.py",
        [QUEUES, REQUEST_IDS],
        (
            "unreadable-dead-lettered",
            "            except Unavailable as error:  # another version of Plaza may be able to decode it\n"
            "                undone.append(message)\n"
            "                left += _back_off(self._queue, [message], error, self._retry)\n",
            "",
            "A message of another version of Plaza waits.",
        ),
        (
            "refused-dead-letter-lost",
            "                    undone.append(message)\n                    left.append(message)\n",
            "                    undone.append(message)\n",
            "A message that the DLQ refuses stays in its queue.",
        ),
        (
            "hidden-deleted",
            "for message in left + hidden]",
            "for message in left]",
            "A message that was hidden stays in its queue.",
        ),
        (
            "outage-halves",
            "if not isinstance(error, Unavailable) and len(part) > 1 and splits < _MAX_SPLITS:",
            "if len(part) > 1 and splits < _MAX_SPLITS:",
            "A batch that fails by an outage is not halved.",
        ),
        (
            "halves-unbounded",
            " and splits < _MAX_SPLITS:",
            ":",
            "A batch is halved a limited number of times.",
        ),
        (
            "halves-reversed",
            "todo += [(handle, part[half:]), (handle, part[:half])]",
            "todo += [(handle, part[:half]), (handle, part[half:])]",
            "Halving a batch keeps the order of its messages.",
        ),
        (
            "invalid-retried",
            "alone = isinstance(error, InvalidMessage) and len(part) == 1",
            "alone = False",
            "A message that its consumer finds invalid is dead-lettered at once.",
        ),
        (
            "invalid-batch-dead-lettered",
            "alone = isinstance(error, InvalidMessage) and len(part) == 1",
            "alone = isinstance(error, InvalidMessage)",
            "Only the message that causes an error is dead-lettered.",
        ),
        (
            "attempts-not-carried",
            "    if attempts:\n        carried[ATTEMPTS] = str(attempts)\n",
            "",
            "The attempts of a message that is sent again are counted on.",
        ),
        (
            "wait-not-carried",
            "carried[WAITING_SINCE] = str(delivery.waiting_since_ms)",
            "pass",
            "The wait of a message that is sent again is counted on.",
        ),
        (
            "wait-of-attempt",
            "if action is Action.SEND_AGAIN and attempts == delivery.attempts:",
            "if action is Action.SEND_AGAIN:",
            "A message that spent an attempt begins its wait again.",
        ),
        (
            "first-sent-not-carried",
            "carried = {FIRST_SENT: str(delivery.sent_ms), ORIGINAL",
            "carried = {ORIGINAL",
            "A message that is sent again keeps the time when it was first sent.",
        ),
        (
            "attributes-not-carried",
            '        if "stringValue" in part:\n',
            "        if False:\n",
            "A message that is sent again keeps its attributes.",
        ),
        (
            "refused-deleted",
            "        left += [part[index] for index in refused]\n",
            "",
            "A message that SQS refused to move stays in its queue.",
        ),
        (
            "queue-down-deletes",
            "            return [*left, *messages[messages.index(part[0]) :]]",
            "            return left",
            "Messages that could not be moved stay in their queue.",
        ),
        (
            "dead-stay",
            "    left = _send(dlq_of(queue), dead, {CAUSE: dead_letters.render_cause(error)})\n",
            "    left = []\n",
            "A message without attempts goes to the DLQ.",
        ),
        (
            "dead-without-cause",
            "{CAUSE: dead_letters.render_cause(error)}",
            "{}",
            "A dead letter has its cause.",
        ),
        (
            "consumed-with-failed",
            "                undone += messages\n",
            "",
            "A message that failed is not counted as consumed.",
        ),
        (
            "request-id-lost",
            'if "request_id" in fields and (request_id',
            "if False and (request_id",
            "An event has the id of its request.",
        ),
    ),
    *mutants_of(
        "infra/queues/retries.py",
        [QUEUES, ORDER_RETRIES],
        (
            "outage-spends-attempts",
            "    if not isinstance(error, Unavailable):\n        attempts = delivery.attempts + 1",
            "    if True:\n        attempts = delivery.attempts + 1",
            "An outage spends no attempt.",
        ),
        (
            "one-attempt-more",
            "if attempts >= policy.max_attempts:",
            "if attempts > policy.max_attempts:",
            "A message has five attempts.",
        ),
        (
            "delay-of-next",
            "policy.back_off_s[min(attempts, len(policy.back_off_s)) - 1]",
            "policy.back_off_s[min(attempts, len(policy.back_off_s) - 1)]",
            "The first retry is after the first back-off.",
        ),
        (
            "dead-before-resent",
            "if delivery.is_resent and now_ms - delivery.waiting_since_ms >=",
            "if now_ms - delivery.waiting_since_ms >=",
            "A message is tried again after its longest wait: its clock may be older than an outage.",
        ),
        (
            "waits-forever",
            "    if delivery.is_resent and now_ms - delivery.waiting_since_ms"
            " >= policy.max_wait_s * 1_000:\n"
            "        return RetryDecision(Action.DEAD_LETTER, 0, attempts)\n",
            "",
            "A message waits for twelve hours at most.",
        ),
        (
            "max-receives",
            "is_last = delivery.receives > len(policy.back_off_s)",
            "is_last = False",
            "A message that waits does not reach the receives of its queue.",
        ),
        (
            "one-receive-less",
            "is_last = delivery.receives > len(policy.back_off_s)",
            "is_last = delivery.receives >= len(policy.back_off_s)",
            "A message waits for each back-off before it is sent again.",
        ),
        (
            "busy-waits-long",
            "    if isinstance(error, Busy):\n",
            "    if False:\n",
            "A message for locked rows is retried within seconds.",
        ),
        (
            "resent-begins-again",
            "    elif is_last or delivery.is_resent:\n",
            "    elif is_last:\n",
            "A message that was sent again waits for the longest back-off.",
        ),
        (
            "wait-in-backlog",
            'int(record["attributes"].get("ApproximateFirstReceiveTimestamp", now_ms))',
            'int(record["attributes"].get("SentTimestamp", now_ms))',
            "Time in a backlog is no wait.",
        ),
        (
            "numbers-unchecked",
            "if isinstance(text, str) and text.isascii() and text.isdigit() else default",
            "",
            "An attribute that is not a number is ignored.",
        ),
        (
            "receives-of-queue",
            "return 2 * (len(self.back_off_s) + 1)",
            "return len(self.back_off_s) + 1",
            "SQS moves a message only after twice the receives of one that waits.",
        ),
    ),
    *mutants_of(
        "infra/derived/outbox.py",
        [OUTBOX, SWEEP],
        (
            "entries-unbounded",
            "while members and sent < max_entries and not",
            "while members and not",
            "A run sends about max_entries.",
        ),
        (
            "time-unbounded",
            "sent < max_entries and not deadline.has_passed:",
            "sent < max_entries:",
            "A run ends after max_s.",
        ),
        (
            "grace",
            "members = list(find(clock.now_us() - grace_us))",
            "members = list(find(clock.now_us()))",
            "Outboxes younger than the grace are not swept.",
        ),
        (
            "refused-confirmed",
            "            if accepted == len(entries):\n",
            "            if True:\n",
            "What the queue did not accept stays due.",
        ),
        (
            "one-page",
            "        members += [page.member for page in swept if page.has_more]\n",
            "",
            "All pages of an outbox are swept in one run.",
        ),
        (
            "not-confirmed",
            "        confirm_all([page.progress for page in swept])\n",
            "",
            "The progress of a sweep is stored after its entries were sent.",
        ),
        (
            "not-repaired",
            "        if repair:\n            repair(pages)\n",
            "",
            "Targets that miss a commit or are not loaded are repaired.",
        ),
        (
            "group-of-all",
            "        if entries >= _ENTRIES_PER_SEND:\n",
            "        if False:\n",
            "A part that the queue refuses does not keep the others due.",
        ),
        (
            "age-of-newest",
            "(now_us - min(times_us, default=now_us)) / 1e6",
            "(now_us - max(times_us, default=now_us)) / 1e6",
            "The measured age is the age of the oldest entry.",
        ),
        (
            "ahead-not-found",
            "    members = [member for ahead in replies[1::2] for member in ahead]\n",
            "    members: list[str] = []\n",
            "A member whose time is ahead of the clock is due.",
        ),
        (
            "wrapped-lost",
            "*([(0, wrapped)] if wrapped else [])",
            "",
            "Of many members each is found as likely.",
        ),
        (
            "always-the-first",
            "first = random.randrange(count)",
            "first = 0",
            "Of many members each is found as likely.",
        ),
    ),
    *mutants_of(
        "infra/redis/lua/confirm_sweep.lua",
        [SWEEP, OUTBOX],
        (
            "another-was-faster",
            "if (redis.call('GET', KEYS[1]) or '') ~= ARGV[2] then return 0 end",
            "",
            "The progress of a faster sweep stays.",
        ),
        (
            "no-ttl",
            "redis.call('SET', KEYS[1], ARGV[3], 'EX', ARGV[5])",
            "redis.call('SET', KEYS[1], ARGV[3])",
            "The progress of a member that is gone expires.",
        ),
        (
            "comes-back",
            "redis.call('ZADD', KEYS[2], 'XX', ARGV[4], ARGV[1])",
            "redis.call('ZADD', KEYS[2], ARGV[4], ARGV[1])",
            "A member that left the index meanwhile stays out of it.",
        ),
        (
            "time-not-stored",
            "if ARGV[4] ~= '' then redis.call('ZADD', KEYS[2], 'XX', ARGV[4], ARGV[1]) end",
            "",
            "The index has the time of the oldest entry, as of the last sweep.",
        ),
    ),
    *mutants_of(
        "infra/derived/projections.py",
        [PROJECTIONS, COUNTERS],
        (
            "redis-down-fails",
            "    except RedisDown:\n        return read_mysql(ids)\n",
            "    except ZeroDivisionError:\n        return read_mysql(ids)\n",
            "MySQL stands in while Redis is unavailable.",
        ),
        (
            "store-fails",
            "        with suppress(RedisDown):\n            store",
            "        with suppress(ZeroDivisionError):\n            store",
            "A value that Redis does not store is returned.",
        ),
        (
            "expire-together",
            "int(ttl_s * random.uniform(0.9, 1.1))",
            "int(ttl_s)",
            "Projections that were stored together do not expire together.",
        ),
        (
            "announced-forever",
            '("EXPIRE", key, FENCE_TTL_S, "NX"),',
            "",
            "The fence of a reader expires.",
        ),
        (
            "announced-again",
            '("EXPIRE", key, FENCE_TTL_S, "GT"),',
            "",
            "A later reader renews the fence.",
        ),
        (
            "fence-replaced",
            '("HSETNX", key, "fence", fence),',
            '("HSET", key, "fence", fence),',
            "Two readers at once have one fence.",
        ),
        (
            "long-values-together",
            "group_by_tag(keys, 1 if is_long else _MAX_KEYS)",
            "group_by_tag(keys, _MAX_KEYS)",
            "Long values have a run of their own.",
        ),
        (
            "create",
            "(int(create), FENCE_TTL_S, *args)",
            "(1, FENCE_TTL_S, *args)",
            "A writer creates no projection.",
        ),
    ),
    *mutants_of(
        "infra/derived/projections.py",
        [PROJECTIONS],
        (
            "replica-misses",
            "if source is replicas.run_all and None in values:",
            "if False:",
            "Keys that a replica lacks are read from its master.",
        ),
    ),
    *mutants_of(
        "infra/redis/lua/project.lua",
        [PROJECTIONS, COUNTERS],
        (
            "older",
            "if current[1] and tonumber(current[1]) > tonumber(version) then",
            "if false then",
            "An older value does not replace a newer one.",
        ),
        (
            "by-text",
            "if current[1] and tonumber(current[1]) > tonumber(version) then",
            "if current[1] and current[1] > version then",
            "Versions are compared as numbers.",
        ),
        (
            "value-no-ttl",
            "redis.call('EXPIRE', key, ttl)",
            "",
            "A projection expires.",
        ),
        (
            "fence-no-ttl",
            "redis.call('EXPIRE', key, fence_ttl)",
            "",
            "A fence expires.",
        ),
        (
            "no-fence",
            "  else\n    redis.call('HSET', key, 'version', version)",
            "  else",
            "A writer that finds no projection leaves its version as a fence.",
        ),
    ),
    *mutants_of(
        "infra/redis/lua/store_read.lua",
        [PROJECTIONS, COUNTERS],
        (
            "fence",
            "if current[1] == fence and tonumber",
            "if tonumber",
            "A value is stored where the fence of its reader still is.",
        ),
        (
            "older",
            "if current[1] == fence and tonumber(current[2]) <= tonumber(version) then",
            "if current[1] == fence then",
            "An older value does not replace a newer one.",
        ),
        (
            "no-ttl",
            "redis.call('EXPIRE', key, ttl)",
            "",
            "A projection expires.",
        ),
    ),
    *mutants_of(
        "infra/redis/lua/drop.lua",
        [CACHE],
        (
            "newer",
            "if stored[1] and (tonumber(stored[1]) > version or",
            "if stored[1] and (false or",
            "A value that is newer than the version stays.",
        ),
        (
            "same",
            "or stored[2] and tonumber(stored[1]) == version) then",
            ") then",
            "A value of the version stays.",
        ),
        (
            "value-stays",
            "redis.call('HDEL', KEYS[1], 'value')",
            "",
            "A value older than the version is deleted.",
        ),
        (
            "fence-no-ttl",
            "redis.call('EXPIRE', KEYS[1], ARGV[2])",
            "",
            "A fence expires.",
        ),
    ),
]
