"""The digest of a request with an Idempotency-Key stays: a repeat may reach another version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pytest

from plaza.commerce.flash_sales import Terms
from plaza.core.idempotency import IdempotentRequest
from plaza.core.reactions import Target
from plaza.social.content.model import Draft
from plaza.social.moderation.model import ReportDraft

POST = Draft(type="post", author_id=7, body="b", kind="note", title="t", images=("https://a/1",))
REQUESTS: dict[str, Mapping[str, Any]] = {
    "post": asdict(POST),
    "review": asdict(Draft(type="review", author_id=7, body="b", parent_id=5, score=4)),
    "report": {"report": asdict(ReportDraft(7, Target("post", 11), "spam", None))},
    "voucher": {"voucher": asdict(Terms(5, "Dinner", 990, 3, 1, 2, "flash", None))},
    "redemption": {"redemption": {"voucher": "9", "code": "ABCD"}},
}
DIGESTS = {
    "post": "2560b17acbc7010af5ac9a571e15fe09",
    "review": "c47a1bf496bd870098ca8b364227daca",
    "report": "127e60c3df872931fa714136ac214562",
    "voucher": "790aaa3e8897f048a5b08244ccab9441",
    "redemption": "a2451d078aa546018f41d0483f217766",
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_has_the_pinned_digest(name: str) -> None:
    assert IdempotentRequest.of("k", REQUESTS[name]).request_sha256.hex()[:32] == DIGESTS[name]
