import pytest

from bench.figures import Figure, Goal, Peer, format_number


def test_ratio_is_the_multiple_of_the_peer() -> None:
    assert Figure("gate", 90, "changes/s", Peer("five calls", 120)).ratio == 0.75


@pytest.mark.parametrize(("value", "reached"), [(72, True), (71, False)])
def test_goal_for_the_ratio_depends_on_the_peer(value: int, reached: bool) -> None:
    goal = Goal("at least", 0.6, "ratio")
    assert Figure("gate", value, "changes/s", Peer("five calls", 120), goal).reached is reached


@pytest.mark.parametrize(("value", "reached"), [(0.2, True), (0.21, False)])
def test_goal_for_the_value_ignores_the_peer(value: float, reached: bool) -> None:
    goal = Goal("at most", 0.2)
    assert Figure("like", value, "ms", Peer("its parts", 0.01), goal).reached is reached


def test_goal_for_the_ratio_is_missed_without_a_peer() -> None:
    goal = Goal("at least", 0.6, "ratio")
    assert Figure("gate", 90, "changes/s", None, goal).reached is False
    assert Figure("gate", 90, "changes/s", Peer("did nothing", 0), goal).reached is False


def test_figure_without_a_goal_is_neither_reached_nor_missed() -> None:
    assert Figure("log line", 0.02, "ms").reached is None


def test_json_has_the_values_of_the_table() -> None:
    figure = Figure(
        "gate", 90, "changes/s", Peer("five calls", 120), Goal("at least", 0.6, "ratio")
    )
    assert figure.to_dict() == {
        "name": "gate",
        "value": 90,
        "unit": "changes/s",
        "peer": {"name": "five calls", "value": 120},
        "ratio": 0.75,
        "goal": ">= 0.6 x",
        "reached": True,
    }


@pytest.mark.parametrize(
    ("value", "text"), [(43210.7, "43,211"), (14.23, "14.2"), (0.1843, "0.184"), (1, "1")]
)
def test_numbers_have_three_significant_digits(value: float, text: str) -> None:
    assert format_number(value) == text
