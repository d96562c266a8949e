"""Block and unblock a user.

A block is committed, then its projection is dropped, then the follows of both users end. A follow
checks for a block before and after its gate (``follows.follow_user``). So of a follow and a block
at the same time, either the block ends the follow, or the follow finds the block and is taken back.
If the process ends in between, the announced refresh repeats the rest (``repair``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plaza.core.reactions import FOLLOW, Target, queries, react
from plaza.core.targets import announce
from plaza.infra.mysql import mysql, participants
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.mysql.participants import Changes
from plaza.infra.runtime.observability import record
from plaza.people.blocks import mysql_store, redis_store
from plaza.people.blocks.model import MAX_BLOCKS, BlockLimit, SelfBlock


def block(user_id: int, actor_id: int) -> bool:
    """Block a user and end the follows of both; return False if the user was blocked already.

    Safe to repeat, also after an error: the block may be stored, and the repeat ends the follows.
    Raises SelfBlock, BlockLimit, TargetMissing, MysqlDown, RedisDown, and what ``react`` raises.
    """
    if user_id == actor_id:
        raise SelfBlock(f"User {user_id} is your own user. Block another one.")
    react.require_existing(Target("user", user_id))
    changes = Changes(blockers=[actor_id])

    def work(cursor: Cursor) -> bool:
        rows = participants.read(cursor, changes)
        is_new = mysql_store.insert(cursor, actor_id, user_id)
        if is_new and mysql_store.count(cursor, actor_id) > MAX_BLOCKS:
            raise BlockLimit(f"You block {MAX_BLOCKS} users. Unblock one first.")
        participants.write(cursor, participants.decide(changes, rows))
        return is_new

    announce.announce_write("user", actor_id)
    is_new = mysql.run_in_transaction(work)
    _drop_projections([actor_id])
    _end_follow(user_id, actor_id)
    _end_follow(actor_id, user_id)
    return is_new


def unblock(user_id: int, actor_id: int) -> bool:
    """Unblock a user; return False if the user was not blocked. Follows stay ended. Raises
    MysqlDown, RedisDown."""
    changes = Changes(blockers=[actor_id])

    def work(cursor: Cursor) -> bool:
        rows = participants.read(cursor, changes)
        was_blocked = mysql_store.delete(cursor, actor_id, user_id)
        participants.write(cursor, participants.decide(changes, rows))
        return was_blocked

    announce.announce_write("user", actor_id)
    was_blocked = mysql.run_in_transaction(work)
    _drop_projections([actor_id])
    return was_blocked


def repair(targets: Iterable[tuple[str, int]]) -> None:
    """Repeat what changes of blocks by the users among announced ``targets`` may have missed: drop
    their projections, and end the stored follows between blocked users.

    Two statements and one round trip, and one reaction for each such follow: only a process that
    ended leaves one. Raises MysqlDown, RedisDown, QueueDown.
    """
    user_ids = [target_id for target_type, target_id in targets if target_type == "user"]
    if not user_ids:
        return
    _drop_projections(user_ids)
    follows = mysql_store.find_follows_of_blocked(user_ids)
    for follower_id, followed_id in follows:
        _end_follow(follower_id, followed_id)
    if follows:
        record("follows_of_blocked_ended", ended=len(follows))


def _end_follow(follower_id: int, followed_id: int) -> None:
    """Turn a follow off, if it is on or may be on its way to MySQL while Redis is unavailable."""
    target = Target("user", followed_id)
    [followers], exact = queries.read_counts([(FOLLOW, target)], follower_id)
    if followers.viewer_state or not exact:
        react.react(FOLLOW, target, follower_id, False)


def _drop_projections(user_ids: Sequence[int]) -> None:
    redis_store.drop_blocked(user_ids, mysql_store.read_now_us())
