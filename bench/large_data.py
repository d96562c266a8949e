"""A large data set for one reader: 5,000 followees with 150,000 posts, 200,000 shops of one city,
100,000 likes and notifications, lists of the same length, and 100 posts and authors with 1,000
reactions of each kind."""

from bench.harness import Harness
from plaza.infra.mysql import mysql

FOLLOWEES, POSTS, POSTS_OF_WRITER, SHOPS_IN_CITY, ROWS = 5_000, 150_000, 30_000, 200_000, 100_000
FEW = 1_000  # rows of lists that no user makes longer
POPULAR = 100  # the first posts and authors
READER, ADMIN = 51_000_001, 51_000_002
FAN, AUTHOR, WRITER = 52_000_000, 53_000_000, 54_000_000  # the first of many has the number 1
POST, COMMENT, REVIEW = 55_000_000, 56_000_000, 57_000_000
SHOP, VOUCHER, ORDER = 58_000_000, 59_000_000, 60_000_000
FIRST_US, STEP_US = 1_700_000_000_000_000, 400_000_000
MIDDLE_US = FIRST_US + ROWS // 2 * STEP_US
CITY_X, CITY_Y, CITY_SIDE = 13.4, 52.52, 0.2  # degrees

_AT = f"'1970-01-01' + INTERVAL ({FIRST_US} + seq * {STEP_US}) MICROSECOND"
_VERSION = f"{FIRST_US} + seq * {STEP_US}"
_USERS = "user (id, nickname)"
_TEXTS = "content (content_type, content_id, author_id, parent_id, created_at, kind, title, body)"
_REACTIONS = "reaction (target_type, target_id, kind, actor_id, state, version)"
_REPORTS = "report (id, reporter_id, target_type, target_id, reason)"
_SHOPS = "shop (id, name, type_id, x, y)"
_VOUCHERS = (
    "voucher (id, shop_id, title, price_cents, initial_stock, stock, opens_at, closes_at,"
    " created_by)"
)
_MEMBERS = "shop_member (shop_id, user_id, role, appointed_by, created_at)"
_UNREAD = "unread_counter (user_id, sequence, unread)"
_GROUPS = (
    "notification_group (user_id, kind, subject_type, subject_id, fresh, read_sequence, changed,"
    " shown_sequence, fresh_after, is_open, changed_at, changed_on)"
)
_REDEMPTIONS = "redemption (shop_id, used_at, order_id, voucher_id, used_by)"
_ORDERS = "voucher_order (order_id, voucher_id, buyer_id, holder_id)"


def fill(harness: Harness) -> None:
    """Insert the data set, a tenth of it if ``quick``; one statement a list."""
    authors, posts = harness.scale(FOLLOWEES), harness.scale(POSTS)
    rows, shops = harness.scale(ROWS), harness.scale(SHOPS_IN_CITY)
    author = f"{AUTHOR} + 1 + MOD(seq, {authors})"
    x = f"{CITY_X} + MOD(seq * 0.6180339, 1) * {CITY_SIDE}"
    y = f"{CITY_Y} + MOD(seq * 0.7548776, 1) * {CITY_SIDE} - {CITY_SIDE / 2}"
    note, text = f"{_AT}, 'note', 't', 'b'", f"{_AT}, NULL, NULL, 'b'"
    of_writer = f"'post', {POST} + {POSTS} + seq, {WRITER}, NULL, {note}"
    sale = "NOW(6) - INTERVAL 1 DAY, NOW(6) + INTERVAL 30 DAY"
    by_reader, by_fan = f"{READER}, 1, {_VERSION}", f"{FAN} + seq, 1, {_VERSION}"
    _insert(_USERS, f"{FAN} + seq, 'ada'", rows)
    _insert(_USERS, f"{AUTHOR} + seq, 'ada'", authors)
    _insert(_USERS, f"{READER} + MOD(seq, 2), 'ada'", 2)
    _insert(_USERS, f"{WRITER}, 'bo'", 1)
    _insert(_TEXTS, f"'post', {POST} + seq, {author}, NULL, {note}", posts)
    _insert(_TEXTS, of_writer, harness.scale(POSTS_OF_WRITER))
    _insert(_TEXTS, f"'comment', {COMMENT} + seq, {FAN} + seq, {POST} + 1, {text}", rows)
    _insert(_TEXTS, f"'review', {REVIEW} + seq, {FAN} + seq, {SHOP} + 1, {text}", rows)
    _insert(_REACTIONS, f"'user', {AUTHOR} + seq, 'follow', {by_reader}", authors)
    _insert(_REACTIONS, f"'user', {AUTHOR} + seq, 'follow', {WRITER}, 1, {_VERSION}", authors)
    _insert(_REACTIONS, f"'user', {AUTHOR} + 1, 'follow', {by_fan}", rows)
    _insert(_REACTIONS, f"'post', {POST} + seq, 'like', {by_reader}", rows)
    _insert(_REACTIONS, f"'post', {POST} + seq, 'collect', {by_reader}", rows)
    for of_type, target in (("post", POST), ("comment", COMMENT), ("review", REVIEW)):
        _insert(_REACTIONS, f"'{of_type}', {target} + 1, 'like', {by_fan}", rows)
    by_fans = f"MOD(seq, {POPULAR}), '%s', {FAN} + 1 + seq DIV {POPULAR}, 1, {_VERSION}"
    for of_type, first, kind in (
        ("post", POST, "like"),
        ("post", POST, "collect"),
        ("user", AUTHOR, "follow"),
    ):
        _insert(_REACTIONS, f"'{of_type}', {first} + 1 + {by_fans % kind}", rows)
    _insert("user_block (blocker_id, blocked_id)", f"{READER}, {FAN} + seq", FEW)
    _insert(_REPORTS, f"seq, {READER}, 'post', {POST} + seq, 'spam'", 10 * FEW)
    _insert("shop_type (id, name)", "seq, 'food'", 1)
    _insert(_SHOPS, f"{SHOP} + seq, CONCAT('Noodles ', seq), 1, {x}, {y}", shops)
    _insert(_VOUCHERS, f"{VOUCHER} + seq, {SHOP} + 1, 'Tea', 150, 1000, 1000, {sale}, {ADMIN}", FEW)
    _insert(_ORDERS, f"{ORDER} + seq, {VOUCHER} + seq, {READER}, {READER}", FEW)
    _insert(_MEMBERS, f"{SHOP} + seq, {READER}, 'owner', {ADMIN}, NOW(6)", FEW)
    _insert(_MEMBERS, f"{SHOP} + 1, {FAN} + seq, 'staff', {ADMIN}, NOW(6)", FEW)
    _insert(_REDEMPTIONS, f"{SHOP} + 1, {_AT}, {ORDER} + seq, {VOUCHER} + 1, {READER}", rows)
    _insert("waitlist_entry (voucher_id, buyer_id)", f"{VOUCHER} + seq, {READER}", FEW)
    _insert("checkin (user_id, day)", f"{READER}, '2026-11-01' - INTERVAL seq DAY", FEW)
    _insert(_UNREAD, f"{READER}, {rows}, {rows}", 1)
    notified = f"'post', {POST} + seq, 1, 0, seq, 0, 1, 1, {_AT}, DATE({_AT})"
    _insert(_GROUPS, f"{READER}, IF(MOD(seq, 2), 'like', 'comment'), {notified}", rows)
    mysql.write(
        """
        INSERT IGNORE INTO counter (target_type, target_id, kind, total, version, ranked)
        SELECT target_type, target_id, kind, COUNT(*), 1,
               IF(target_type = 'post' AND kind = 'like', COUNT(*), NULL)
        FROM reaction
        GROUP BY target_type, target_id, kind
        """
    )


def _insert(into: str, values: str, count: int) -> None:
    """Insert ``values`` of ``seq`` from 1 to ``count``, by MariaDB's tables of integers."""
    mysql.write(f"INSERT IGNORE INTO {into} SELECT {values} FROM seq_1_to_{count}")
