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
        "infra/consumer.py",
        [QUEUES, REQUEST_IDS],
        (
            "unreadable-dead-lettered",
            "        except Unavailable as error:  # another version of Plaza may be able to decode it\n"
            "            unread.append(message)\n"
            "            failed += _back_off(queue, [message], error, retry)\n",
            "",
            "A message of another version of Plaza waits.",
        ),
        (
            "refused-dead-letter-lost",
            "            if not dead_letters.dead_letter(queue, message, error):\n"
            "                failed.append(message)\n",
            "            dead_letters.dead_letter(queue, message, error)\n",
            "A message that the DLQ refuses stays in its queue.",
        ),
        (
            "hidden-deleted",
            "    failed += hidden\n",
            "",
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
            "todo += [part[half:], part[:half]]",
            "todo += [part[:half], part[half:]]",
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
            "        left += [part[place] for place in refused]\n",
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
            '_record_batch(queue, event["Records"], [*failed, *unread, *undone])',
            '_record_batch(queue, event["Records"], [*failed, *unread])',
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
        "infra/retries.py",
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
        "infra/outbox.py",
        [OUTBOX, SWEEP],
        (
            "one-round",
            "        outboxes += len(due)\n",
            "        outboxes += len(due)\n        max_entries = 0\n",
            "A sweep continues until nothing is due.",
        ),
        (
            "entries-unbounded",
            "while sent < max_entries and not",
            "while not",
            "A run sends about max_entries.",
        ),
        (
            "time-unbounded",
            " and not deadline.has_passed:\n        due",
            ":\n        due",
            "A run ends after max_s.",
        ),
        (
            "age-of-last",
            "oldest_us = min([oldest_us, *accepted_us])",
            "oldest_us = min([clock.now_us(), *accepted_us])",
            "The age is that of the oldest entry of the run.",
        ),
        (
            "grace",
            "due = find(clock.now_us() - grace_us)",
            "due = find(clock.now_us())",
            "Outboxes younger than the grace are not swept.",
        ),
    ),
    *mutants_of(
        "infra/outbox.py",
        [SWEEP],
        (
            "age-of-newest",
            "age_s = clock.now_s() - min(times_us) / 1e6",
            "age_s = clock.now_s() - max(times_us) / 1e6",
            "The measured age is that of the oldest entry.",
        ),
        (
            "oldest-outbox-only",
            '("ZRANGE", index_key(shard), 0, 1)',
            '("ZRANGE", index_key(shard), 1, 1)',
            "The entries of the oldest outbox are measured.",
        ),
    ),
    *mutants_of(
        "infra/projections.py",
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
        "infra/projections.py",
        [PROJECTIONS],
        (
            "replica-misses",
            "if source is replicas.run_all and None in found:",
            "if False:",
            "Keys that a replica lacks are read from its master.",
        ),
    ),
    *mutants_of(
        "infra/scripts/project.lua",
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
        "infra/scripts/drop.lua",
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
