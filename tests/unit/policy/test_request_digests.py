"""Requests with an Idempotency-Key keep their digest: a repeat may reach another version of Plaza.

A field that a release adds to a request is left out of its digest while it has its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pytest

from plaza.content.model import Draft
from plaza.flash_sales import Terms
from plaza.idempotency import IdempotentRequest
from plaza.moderation.model import ReportDraft
from plaza.reactions import Target

POST = Draft(type="post", author_id=7, body="b", kind="note", title="t", images=("https://a/1",))
REQUESTS: dict[str, Mapping[str, Any]] = {
    "post": POST.to_request(),
    "review": Draft(type="review", author_id=7, body="b", parent_id=5, score=4).to_request(),
    "report": {"report": asdict(ReportDraft(7, Target("post", 11), "spam", None))},
    "voucher": {"voucher": asdict(Terms(5, "Dinner", 990, 3, 1, 2, "flash", None))},
    "redemption": {"redemption": {"voucher": "9", "code": "ABCD"}},
}
DIGESTS = {
    "post": "82bc0db16e5332beb60f8556f8e39ee7",
    "review": "0134c15962cc1ca9d5f56e53226947c1",
    "report": "127e60c3df872931fa714136ac214562",
    "voucher": "790aaa3e8897f048a5b08244ccab9441",
    "redemption": "a2451d078aa546018f41d0483f217766",
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_has_the_digest_of_the_version_before(name: str) -> None:
    assert IdempotentRequest.of("k", REQUESTS[name]).request_sha256.hex()[:32] == DIGESTS[name]
