"""The requests of the stack's bench."""

from collections import Counter
from itertools import islice

from bench.stack import CROWD, LIKES, POSTS, WARM_UP, make_likes, read_routes


def test_every_like_of_a_whole_run_is_a_change() -> None:
    calls = list(islice(make_likes(range(CROWD)), WARM_UP + 2 * LIKES))
    liked: set[tuple[str, int | None]] = set()
    for call, user_id in calls:
        assert ((call.path, user_id) in liked) is (call.method == "DELETE")
        liked ^= {(call.path, user_id)}


def test_second_round_removes_the_likes() -> None:
    methods = Counter(call.method for call, _ in islice(make_likes([7]), 2 * POSTS))
    assert methods == {"PUT": POSTS, "DELETE": POSTS}


def test_every_route_of_the_contract_but_sign_in_is_used() -> None:
    paths = {call.path for call, _ in read_routes(7)}
    assert "/posts/1/likes/me" in paths
    assert "/shop-types" in paths
    assert not [path for path in paths if "{" in path or path.startswith("/auth/")]
