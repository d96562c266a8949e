"""The steps of a run. Each step compares a bounded range and returns its part's next cursor.

A run has these parts:

    targets:<type>               a quota of all targets: counters, what they count, sorted lists
    users                        a quota of all users: the same log, changed:...             targets
    and users that changed (``cycles``) targets:shop                 a quota of all shops: counters
    and their reviews review_likes                 a quota of all reviews: copied likes and slots
    shops, vouchers              a quota of all shops and vouchers: places, filters of ids hours
    hourly likes of posts: of yesterday, and of eight days if they fit unread counters
    a quota of all unread counters: their unread groups and blocks groups                       a
    quota of all users with an unread counter: the rows that their groups count redis:<node>
    keys of a node: targets, projections of counters, derived lists filter:<kind>:<type>:<id>
    actors of a target in the quota that has a Bloom filter recheck                      suspects of
    the parts above, compared a second time repairs                      findings, sent to the queue
    ``repairs``

The first eleven run concurrently; each of the others begins when all before it are done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from plaza.commerce.flash_sales import inspection as sales
from plaza.commerce.shops import inspection as shops
from plaza.core import counters
from plaza.core.reactions import KINDS, Kind, Target, inspection, sorted_lists
from plaza.core.reactions.model import CachedTarget
from plaza.infra.queues.queue import QueueDown
from plaza.infra.runtime.clock import Deadline
from plaza.notifications.unread import recount
from plaza.operate.reconciliation import (
    cycles,
    derived_lists,
    mysql_counts,
    mysql_cycles,
    mysql_runs,
    redis_scan,
)
from plaza.operate.reconciliation.comparison import compare_subjects
from plaza.operate.reconciliation.cycles import CHANGED, MIN_STEPS
from plaza.operate.reconciliation.model import (
    CHECK_FILTER,
    CHECK_LIST,
    CHECK_STATE,
    FILTER,
    HOURS,
    LIST,
    MAX_FINDINGS_PER_MESSAGE,
    MAX_ID,
    REVIEW_LIKES,
    SHOP,
    SLOT,
    SORTED,
    TYPES,
    UNREAD_BLOCKS,
    UNREAD_FRESH,
    UNREAD_SEQUENCE,
    UNREAD_TOTAL,
    Counts,
    Finding,
    NewPart,
    RepairFindings,
    RollingComparison,
    RunPart,
    StepResult,
    Subject,
    Suspect,
    Tally,
    compare_counts,
)
from plaza.operate.reconciliation.queues import REPAIRS
from plaza.social.content import inspection as texts
from plaza.social.recommendations import like_roll_up, post_hours

HOURS_PART = "hours"
RECHECK = "recheck"
SEND_REPAIRS = "repairs"
MAX_SORT_S = 30.0  # of a step; lists of more than some million rows need `sort-reactions`
_TARGETS_PER_STEP = 300
_SCANS_PER_STEP = 10
_ACTORS_PER_STEP = 5_000
ACTORS_PER_CALL = 250
_LISTED_PER_STEP = 500
_SUSPECTS_PER_STEP = 200
_FINDINGS_PER_STEP = 1_000
_MAX_DENIED = 20


def plan() -> tuple[list[NewPart], dict[str, int]]:
    """Return the parts that a run begins with, and name -> expected subjects of each cycle.
    Raises RedisDown, MysqlDown."""
    parts, expected = cycles.plan(ROLLING.values())
    nodes = redis_scan.read_nodes()
    return [*parts, NewPart(HOURS_PART), *(NewPart(f"redis:{node}") for node in nodes)], expected


def execute(part: RunPart) -> StepResult:
    """Execute the next step of ``part``. It repairs nothing; it may send messages, and fill sorted
    lists that large targets lack.

    Raises MysqlDown, RedisDown, QueueDown.
    """
    if comparison := ROLLING.get(part.name):
        return cycles.advance(part, comparison)
    if comparison := ROLLING.get(part.name.removeprefix(CHANGED)):
        return cycles.compare_dirty(int(part.cursor or 0), comparison)
    name, _, of = part.name.partition(":")
    match name:
        case "hours":
            return _compare_hours(part)
        case "log":
            return cycles.find_changes(int(part.cursor or 0), ROLLING.values())
        case "redis":
            return _scan_node(of, int(part.cursor or 0))
        case "filter":
            kind, target_type, target_id = of.split(":")
            target = Target(target_type, int(target_id))
            return _check_filter(KINDS[kind], target, int(part.cursor or 0))
        case "recheck":
            return _recheck_suspects(part.run_id, int(part.cursor or 0))
        case "repairs":
            return _send_repairs(part.run_id, int(part.cursor or 0))
    raise LookupError(f"unknown part {part.name}")


def _compare_targets(target_type: str, after_id: int) -> StepResult:
    last_id = mysql_counts.find_target_range_end(target_type, after_id)
    counted = mysql_counts.count_targets(target_type, after_id, last_id)
    differing = inspection.find_differing(target_type, after_id, last_id)
    sorted_lists.sort_range(target_type, after_id, last_id, Deadline.in_s(MAX_SORT_S))
    return StepResult(
        cursor=str(last_id),
        is_last=last_id == MAX_ID,
        tally=Tally(targets=counted.subjects, relations=counted.relations),
        findings=[
            *compare_counts(target_type, counted.counters, counted.rows),
            *(Finding(SORTED, Subject(kind.name, *target), "") for kind, target in differing),
        ],
        parts=_list_filters(target_type, counted.rows),
    )


def _list_filters(target_type: str, rows: Counts) -> list[str]:
    """Return the parts for the targets with more actors than ``recent`` has and a Bloom filter."""
    pairs = [
        (KINDS[what], Target(target_type, target_id))
        for (target_id, what), count in sorted(rows.items())
        if what in KINDS and count > inspection.read_recent_cap()
    ]
    return [
        f"filter:{kind.name}:{target}"
        for (kind, target), cached in zip(pairs, inspection.inspect_all(pairs, 1), strict=True)
        if isinstance(cached, CachedTarget) and cached.bloom
    ]


def _compare_changed_targets(target_type: str, ids: Sequence[int]) -> StepResult:
    sizes = mysql_counts.read_target_sizes(target_type, ids)
    chosen, last_id = cycles.choose(ids, sizes, mysql_counts.MAX_RELATIONS)
    result = StepResult(str(last_id), is_last=False, tally=Tally(changed=len(chosen)))
    if chosen:
        counted = mysql_counts.count_given_targets(target_type, chosen)
        result.findings = compare_counts(target_type, counted.counters, counted.rows)
    return result


def _compare_shops(after_id: int) -> StepResult:
    last_id = mysql_counts.find_shop_range_end(after_id)
    counted = mysql_counts.count_shops(after_id, last_id)
    return StepResult(
        cursor=str(last_id),
        is_last=last_id == MAX_ID,
        tally=Tally(targets=counted.subjects),
        findings=compare_counts(SHOP, counted.counters, counted.rows),
    )


def _compare_users(after_id: int) -> StepResult:
    last_id = mysql_counts.find_user_range_end(after_id)
    counted = mysql_counts.count_users(after_id, last_id)
    return StepResult(
        cursor=str(last_id),
        is_last=last_id == MAX_ID,
        tally=Tally(users=counted.subjects),
        findings=compare_counts("user", counted.counters, counted.rows),
    )


def _compare_review_likes(after_id: int) -> StepResult:
    last_id = mysql_counts.find_review_range_end(after_id)
    count, wrong = like_roll_up.compare_review_likes(after_id, last_id)
    slots = texts.find_wrong_slots(after_id, last_id)
    return StepResult(
        cursor=str(last_id),
        is_last=last_id == MAX_ID,
        tally=Tally(targets=count),
        findings=[
            Finding(
                REVIEW_LIKES,
                Subject("review_likes", "review", review_id),
                f"copied {copied}, likes {likes}",
            )
            for review_id, (copied, likes) in wrong.items()
        ]
        + [
            Finding(SLOT, Subject("slot", "review", review_id), difference)
            for review_id, difference in slots.items()
        ],
    )


def _compare_hours(part: RunPart) -> StepResult:
    """Compare the next range of a day: all of yesterday, then other days within ``MIN_STEPS``."""
    number, after_id = map(int, (part.cursor or "0:0").split(":"))
    day = post_hours.day_of(number)
    last_id = post_hours.find_range_end(day, after_id)
    wrong: dict[int, list[str]] = {}
    for hour in post_hours.compare(day, after_id, last_id):
        of_day = f"{day} {hour.hour % 24:02d}h: stored {hour.net}, log {hour.counted}"
        wrong.setdefault(hour.post_id, []).append(of_day)
    if last_id == MAX_ID:
        number, last_id = number + 1, 0
    return StepResult(
        cursor=f"{number}:{last_id}",
        is_last=number == post_hours.DAYS or (number > 0 and part.steps + 1 >= MIN_STEPS),
        findings=[
            Finding(HOURS, Subject("hours", "post", post_id), "; ".join(hours))
            for post_id, hours in wrong.items()
        ],
    )


def _compare_unread(after_id: int) -> StepResult:
    page = recount.compare_unread(after_id)
    return StepResult(
        cursor=str(page.last_id),
        is_last=page.is_last,
        tally=Tally(users=page.users),
        findings=[
            Finding(reason, Subject("unread", "user", counter.user_id), details)
            for counter in page.wrong
            for reason, is_wrong, details in (
                (
                    UNREAD_TOTAL,
                    counter.unread != counter.counted,
                    f"unread {counter.unread}, groups {counter.counted}",
                ),
                (
                    UNREAD_BLOCKS,
                    counter.blocking != counter.blocks,
                    f"blocking {counter.blocking}, blocks {counter.blocks}",
                ),
            )
            if is_wrong
        ],
    )


def _compare_groups(after_id: int) -> StepResult:
    page = recount.compare_groups(after_id)
    return StepResult(
        cursor=str(page.last_id),
        is_last=page.is_last,
        tally=Tally(users=page.users),
        findings=[
            Finding(
                UNREAD_FRESH,
                Subject(f"unread-{group.key.kind}", *group.key.subject),
                f"fresh {group.fresh}, rows {group.counted}; since the list {group.fresh_after},"
                f" rows {group.counted_after}",
            )
            for group in page.wrong
        ]
        + [
            Finding(
                UNREAD_SEQUENCE, Subject("unread", "user", user_id), f"{excess} below its groups"
            )
            for user_id, excess in page.behind.items()
        ],
    )


def _compare_listed(
    what: str, read_ids: Callable[[int, int], list[int]], after_id: int
) -> StepResult:
    """Compare a page of owners of a list of ``derived_lists``; what differs becomes a suspect."""
    ids = read_ids(after_id, _LISTED_PER_STEP)
    result = StepResult(str(ids[-1] if ids else MAX_ID), is_last=len(ids) < _LISTED_PER_STEP)
    result.tally.cached = len(ids)
    owner = derived_lists.LISTS[what].owner
    states = derived_lists.compare([Subject(what, owner, each) for each in ids])
    result.suspects += [
        Suspect(CHECK_LIST, subject, state.observed)
        for subject, state in states.items()
        if state.differences
    ]
    return result


def _compare_changed_users(ids: Sequence[int]) -> StepResult:
    sizes = mysql_counts.read_user_sizes(ids)
    chosen, last_id = cycles.choose(ids, sizes, mysql_counts.MAX_RELATIONS)
    result = StepResult(str(last_id), is_last=False, tally=Tally(changed=len(chosen)))
    if chosen:
        counted = mysql_counts.count_given_users(chosen)
        result.findings = compare_counts("user", counted.counters, counted.rows)
    return result


ROLLING: dict[str, RollingComparison] = {
    comparison.name: comparison
    for comparison in (
        *(
            RollingComparison(
                f"targets:{target_type}",
                partial(_compare_targets, target_type),
                partial(mysql_counts.estimate_targets, target_type),
                partial(_compare_changed_targets, target_type),
                partial(mysql_cycles.find_changed_targets, target_type),
            )
            for target_type in TYPES
        ),
        RollingComparison(
            "users",
            _compare_users,
            mysql_counts.estimate_users,
            _compare_changed_users,
            mysql_counts.find_changed_users,
        ),
        RollingComparison(f"targets:{SHOP}", _compare_shops, mysql_counts.estimate_shops),
        RollingComparison("review_likes", _compare_review_likes, mysql_counts.estimate_reviews),
        RollingComparison(
            "shops",
            partial(_compare_listed, "shop", shops.read_ids),
            partial(mysql_counts.estimate_ids, "shop"),
        ),
        RollingComparison(
            "vouchers",
            partial(_compare_listed, "voucher", sales.read_voucher_ids),
            partial(mysql_counts.estimate_ids, "voucher"),
        ),
        RollingComparison("unread", _compare_unread, mysql_counts.estimate_unread),
        RollingComparison("groups", _compare_groups, mysql_counts.estimate_unread),
    )
}
"""What each run compares by ids."""


def _scan_node(node: str, cursor: int) -> StepResult:
    """Compare a page of a node's keys. What differs becomes a suspect, not yet a finding."""
    subjects: set[Subject] = set()
    for _ in range(_SCANS_PER_STEP):
        cursor, keys = redis_scan.scan(node, cursor)
        subjects |= {subject for subject in map(_parse_subject, keys) if subject is not None}
        if not cursor or len(subjects) >= _TARGETS_PER_STEP:
            break
    result = StepResult(str(cursor), is_last=not cursor)
    lists = sorted(subject for subject in subjects if subject.what in derived_lists.LISTS)
    for subject, state in derived_lists.compare(lists).items():
        result.tally.cached += 1
        if state.differences:
            result.suspects.append(Suspect(CHECK_LIST, subject, state.observed))
    others = sorted(subjects.difference(lists))
    for subject, (comparison, observed, has_filter) in compare_subjects(others).items():
        result.tally.cached += 1
        if comparison.reasons:
            result.suspects.append(Suspect(CHECK_STATE, subject, observed))
        if has_filter:
            result.parts.append(f"filter:{subject.what}:{subject.target}")
    # After a failover, the keys are on a node with another name.
    result.parts += [f"redis:{name}" for name in redis_scan.read_nodes() if name != node]
    return result


def _parse_subject(key: str) -> Subject | None:
    """Return the subject whose state ``key`` contains, None if it can't be compared with MySQL."""
    if target := inspection.target_of_key(key):
        return Subject(target[0].name, *target[1])
    if owner := counters.owner_of_key(key):
        return Subject("user" if owner[0] == "user" else counters.COMMENT, *owner)
    return derived_lists.find_subject(key)


def _check_filter(kind: Kind, target: Target, after_id: int) -> StepResult:
    """Check that the filter has each active actor of the next page."""
    actor_ids = inspection.read_actors(kind, target, after_id, _ACTORS_PER_STEP)
    denied = [
        actor_id
        for _, of_call in inspection.find_denied(
            [
                (kind, target, actor_ids[start : start + ACTORS_PER_CALL])
                for start in range(0, len(actor_ids), ACTORS_PER_CALL)
            ]
        )
        for actor_id in of_call
    ]
    result = StepResult(
        str(actor_ids[-1] if actor_ids else after_id),
        # A repair rebuilds the whole filter, so these are enough.
        is_last=len(actor_ids) < _ACTORS_PER_STEP or len(denied) >= _MAX_DENIED,
    )
    if denied:
        observed = ",".join(map(str, denied[:_MAX_DENIED]))
        result.suspects.append(Suspect(CHECK_FILTER, Subject(kind.name, *target), observed))
    return result


def _recheck_suspects(run_id: int, after_id: int) -> StepResult:
    """Compare a page of suspects again; what differs again, and is not in transit, is a finding."""
    page = mysql_runs.read_suspects(run_id, after_id, _SUSPECTS_PER_STEP)
    result = StepResult(
        str(page[-1][0] if page else after_id), is_last=len(page) < _SUSPECTS_PER_STEP
    )
    for check, compare_again in CHECKS.items():
        suspects = [suspect for _, suspect in page if suspect.check == check]
        if suspects:
            findings, skipped = compare_again(suspects)
            result.findings += findings
            result.tally.skipped += skipped
    return result


def _recheck_states(suspects: Sequence[Suspect]) -> tuple[list[Finding], int]:
    first = {suspect.subject: suspect.observed for suspect in suspects}
    findings, skipped = [], 0
    for subject, (comparison, observed, _) in compare_subjects(
        sorted(first), name_actors=True
    ).items():
        if comparison.reasons and not comparison.is_conclusive and observed != first[subject]:
            skipped += 1
        else:
            findings += [
                Finding(reason, subject, details) for reason, details in comparison.reasons.items()
            ]
    return findings, skipped


def _recheck_filters(suspects: Sequence[Suspect]) -> tuple[list[Finding], int]:
    """Return the filters that still deny an actor who is active before and after the check."""
    requests = [
        (KINDS[s.subject.what], s.subject.target, [int(i) for i in s.observed.split(",")])
        for s in suspects
    ]
    of_mysql = inspection.read_counters([(kind, target) for kind, target, _ in requests])
    before = mysql_counts.read_active_versions(requests)
    denied = inspection.find_denied(requests)
    after = mysql_counts.read_active_versions(requests)
    findings = []
    versions = zip(of_mysql, denied, strict=True)
    for suspect, on, ((_, db_version), (cached_version, by_filter)), still_on in zip(
        suspects, before, versions, after, strict=True
    ):
        # The filter does not include a commit that has not reached Redis.
        if cached_version < db_version:
            continue
        wrong = [i for i in by_filter if i in on and on[i] == still_on.get(i)]
        if wrong:
            details = f"denies {', '.join(map(str, wrong[:5]))}"
            findings.append(Finding(FILTER, suspect.subject, details))
    return findings, 0


def _recheck_lists(suspects: Sequence[Suspect]) -> tuple[list[Finding], int]:
    first = {suspect.subject: suspect.observed for suspect in suspects}
    differing = {
        s: state for s, state in derived_lists.compare(list(first)).items() if state.differences
    }
    findings = [
        Finding(LIST, subject, state.differences)
        for subject, state in differing.items()
        if state.observed == first[subject]
    ]
    return findings, len(differing) - len(findings)


CHECKS: dict[str, Callable[[Sequence[Suspect]], tuple[list[Finding], int]]] = {
    CHECK_STATE: _recheck_states,
    CHECK_FILTER: _recheck_filters,
    CHECK_LIST: _recheck_lists,
}
"""Check of suspects -> what compares them again: (findings, number of suspects skipped)."""


def _send_repairs(run_id: int, after_id: int) -> StepResult:
    ids = mysql_runs.read_unrepaired(run_id, after_id, _FINDINGS_PER_STEP)
    messages = [
        RepairFindings(tuple(ids[start : start + MAX_FINDINGS_PER_MESSAGE]))
        for start in range(0, len(ids), MAX_FINDINGS_PER_MESSAGE)
    ]
    if REPAIRS.send_all(messages) < len(messages):
        raise QueueDown("SQS refused some repairs")
    return StepResult(str(ids[-1] if ids else after_id), is_last=len(ids) < _FINDINGS_PER_STEP)
