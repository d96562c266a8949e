"""The load of the stack's bench: what each request changes, what its answers come to."""

from collections import Counter
from itertools import islice

from bench.stack import CROWD, LIKES, POSTS, WARM_UP, Load, make_likes, read_routes


def test_every_like_of_a_whole_run_changes_something() -> None:
    tokens = [str(n) for n in range(CROWD)]
    calls = list(islice(make_likes(tokens), WARM_UP + 2 * LIKES))
    liked: set[tuple[str, str | None]] = set()
    for method, path, token in calls:
        assert ((path, token) in liked) is (method == "DELETE")
        liked ^= {(path, token)}


def test_a_second_round_takes_the_likes_back() -> None:
    methods = Counter(method for method, _, _ in islice(make_likes(["a"]), 2 * POSTS))
    assert methods == {"PUT": POSTS, "DELETE": POSTS}


def test_refusals_and_silence_are_errors_but_an_answer_is_none() -> None:
    load = Load(took_s=2.0, each_s=[0.01, 0.02, 0.03, 0.5])
    load.statuses.update({200: 3, 404: 5, 429: 1, 503: 2, 0: 4})
    assert load.errors == 7
    assert load.per_s == 2
    assert (load.quantile_ms(0.5), load.quantile_ms(1)) == (30, 500)


def test_every_route_of_the_contract_is_used_but_those_that_sign_in() -> None:
    paths = {path for _, path, _ in read_routes("t")}
    assert "/posts/1/likes/me" in paths
    assert "/shop-types" in paths
    assert not [path for path in paths if "{" in path or path.startswith("/auth/")]
