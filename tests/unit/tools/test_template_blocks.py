"""``make generate``: YAML with short tags, blocks, and the queues that functions use."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from cli.paths import ROOT
from local.stack.queue_registry import load_queues
from tools.template import code
from tools.template.code import read_queue_use
from tools.template.functions import Function, check_declared, make_scheduled
from tools.template.queues import list_names, name_queue
from tools.template.text import Shared, count_own_lines, load, render, replace_blocks

VALUES: dict[str, Any] = {
    "Reference": {"Ref": "AWS::Region"},
    "Choice": {"Fn::If": ["HasAlarmTopic", [{"Ref": "A"}], []]},
    "Text": {"Fn::Sub": "arn:${AWS::Partition}:sqs:*:*"},
    "Words": ["yes", "null", "1.0", "a: b", "- a", "", 'it\'s "so"', 'a "b"', "\\"],
    "Numbers": [1, True, False],
    "Long": {"Fn::Join": [",", [f"value number {number}" for number in range(20)]]},
    "List": [{"One": {"Two": 2}}, {"Name": "a", "Value": {"Ref": "b"}}, ["c", ["d"]]],
    "Empty": {"Mapping": {}, "List": []},
}


def test_what_is_rendered_is_what_is_loaded() -> None:
    for indent in (0, 8):
        assert load(render({"All": VALUES}, indent)) == {"All": VALUES}


def test_a_line_has_at_most_120_characters_and_no_space_at_its_end() -> None:
    for line in render(VALUES, 8).splitlines():
        assert len(line) <= 120
        assert line == line.rstrip()


def test_a_shared_value_is_written_once() -> None:
    shared = Shared("name", {"key": "value"})
    text = render({"First": {"A": shared}, "Second": {"B": shared}})
    assert text.count("value") == 1
    assert load(text) == {"First": {"A": {"key": "value"}}, "Second": {"B": {"key": "value"}}}


TEMPLATE = """\
Resources:
  # BEGIN queues (make generate)
  Old: 1
  # END queues
  Own: 2
"""


def test_only_what_is_in_a_block_changes() -> None:
    text = replace_blocks(TEMPLATE, {"queues": {"New": {"Type": "A"}}})
    assert load(text) == {"Resources": {"New": {"Type": "A"}, "Own": 2}}
    assert replace_blocks(text, {"queues": {"Old": 1}}) == TEMPLATE
    assert count_own_lines(text) == 2


@pytest.mark.parametrize("blocks", [{}, {"queues": {}, "routes": {}}])
def test_a_template_with_other_blocks_is_refused(blocks: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"has the blocks \['queues'\]"):
        replace_blocks(TEMPLATE, blocks)


def test_a_misspelt_name_or_property_is_refused() -> None:
    functions = [Function("DropCached", "queue", "drop_cached", {})]
    check_declared({"DropCached": {"MemorySize": 1024}}, functions)
    for name, key in (("DropCaches", "MemorySize"), ("DropCached", "Memory")):
        with pytest.raises(ValueError, match="unknown"):
            check_declared({name: {key: 1024}}, functions)


def test_a_schedule_without_an_expression_is_refused() -> None:
    with pytest.raises(ValueError, match=r"ScanKeys has no Schedule in functions\.yaml"):
        make_scheduled(Function("ScanKeys", "schedule", "scan_keys", {}))


# ---------------------------------------------------------------- queues


def uses(folder: str) -> tuple[str, set[str], set[str]]:
    """The queue that a function consumes, and those to which it sends and that it measures."""
    load_queues()
    use = read_queue_use(ROOT / "functions" / folder / "app.py")
    return use.consumed, set(use.sent), set(use.measured)


@pytest.mark.parametrize(
    ("folder", "consumed", "sent", "measured"),
    [
        ("api/reactions", "", {"reactions", "rebuilds", "refreshes"}, set()),
        ("api/feed", "", {"inboxes", "follows", "rebuilds"}, set()),
        ("api/flash_sales", "", {"orders", "pushes", "shops"}, {"orders"}),
        ("queue/fan_out_post", "fanouts", {"fanouts", "fanouts_dlq"}, set()),
        (
            "queue/decide_dead_orders",
            "orders_dlq",
            {"orders_dlq", "orders_dlq_dlq", "pushes"},
            set(),
        ),
        (
            "queue/compare_parts",
            "comparisons",
            {"comparisons", "comparisons_dlq", "repairs"},
            set(),
        ),
        ("queue/repair_drift", "repairs", {"repairs", "repairs_dlq", "shops"}, set()),
        (
            "schedule/sweep_outbox",
            "",
            {
                *("reactions", "checkins", "acknowledgements", "rebuilds", "warm_ups"),
                *("follows", "pushes"),  # of a loop over names
            },
            {"reactions", "checkins"},
        ),
        (  # its module also imports a module of the name of its consumer, by another name
            "queue/refresh_projections",
            "refreshes",
            {"refreshes", "refreshes_dlq", "fanouts", "pushes", "reactions", "rebuilds"},
            set(),
        ),
        ("schedule/finalize_vouchers", "", set(), {"orders"}),
        ("schedule/roll_up_likes", "", set(), set()),
        ("ops/migrate", "", set(), set()),
    ],
)
def test_the_queues_that_a_function_uses_are_found_in_its_code(
    folder: str, consumed: str, sent: set[str], measured: set[str]
) -> None:
    assert uses(folder) == (consumed, sent, measured)


def test_the_queues_are_found_in_what_a_call_calls(
    tmp_path: Path,
) -> None:
    load_queues()
    app = tmp_path / "app.py"
    app.write_text(
        "from plaza.core.reactions import react\n"
        "def handler(event, context):\n    return react.react(event)\n"
    )
    assert read_queue_use(app).sent == {"reactions", "rebuilds"}


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("reactions.react:react", {"reactions", "rebuilds"}),
        ("reactions.react", {"reactions", "rebuilds"}),
        ("reactions.queues:REACTIONS", set()),
    ],
)
def test_the_queues_are_found_in_what_manifests_offer(
    name: str, sent: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_queues()
    monkeypatch.setattr(code, "list_offers", lambda relation: [("core", relation, name)])
    app = tmp_path / "app.py"
    app.write_text(
        "from plaza.infra.contexts import offers\n"
        f"def handler(event, context):\n    return list(offers('of {name}'))\n"
    )
    assert read_queue_use(app).sent == sent


def test_what_a_constant_of_a_manifest_names_is_found(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("ONE = len\nBOTH: tuple = (ONE, abs)\nOTHER = max\n")
    assert [ast.unparse(node) for _, node in code.list_constants(module, "BOTH")] == [
        "BOTH: tuple = (ONE, abs)",
        "ONE = len",
    ]


def test_a_name_of_a_manifest_without_a_definition_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(code, "list_offers", lambda _: [("core", "reactions", "reactions.react:x")])
    with pytest.raises(ValueError, match=r"reactions\.react:x is not defined"):
        code.list_offered("unknown")


def test_a_dlq_with_a_consumer_has_a_dlq_of_its_own() -> None:
    names = list_names()
    assert [name for name in names if "orders" in name] == [
        "orders",
        "orders_dlq",
        "orders_dlq_dlq",
    ]
    assert [name_queue(name) for name in ("orders", "orders_dlq", "orders_dlq_dlq")] == [
        "OrdersQueue",
        "OrdersDlq",
        "OrdersDlqDlq",
    ]
