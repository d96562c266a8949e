"""The static pages that a deploy uploads, and how the edge finds them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from cli.paths import ROOT
from deploy.pages import BUILT, CHECKED, HASHED, KEPT, TYPES, list_pages, upload_pages
from tests.support.node import run_node
from tests.unit.policy.template import load_template

EDGE = load_template((ROOT / "deploy" / "edge.yaml").read_text())["Resources"]


@pytest.fixture
def built(tmp_path: Path) -> dict[str, Path]:
    """A page with one file whose name has a hash. The other page is not built."""
    for name in ("index.html", "app.js", "assets/app-D1x9_k2Q.css"):
        file = tmp_path / "dist" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    return {"app": tmp_path / "dist", "console": tmp_path / "missing"}


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any]]:
    """S3 with a bucket ``pages``, and CloudFront."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        s3, cloudfront = (
            boto3.client(name, region_name="us-east-1") for name in ("s3", "cloudfront")
        )
        s3.create_bucket(Bucket="pages")
        yield s3, cloudfront


def make_distribution(cloudfront: Any) -> str:
    origin = {
        "Id": "pages",
        "DomainName": "pages.s3.us-east-1.amazonaws.com",
        "S3OriginConfig": {"OriginAccessIdentity": ""},
    }
    behavior = {"TargetOriginId": "pages", "ViewerProtocolPolicy": "https-only"}
    made = cloudfront.create_distribution(
        DistributionConfig={
            "CallerReference": "1",
            "Comment": "",
            "Enabled": True,
            "Origins": {"Quantity": 1, "Items": [origin]},
            "DefaultCacheBehavior": behavior,
        }
    )
    return str(made["Distribution"]["Id"])


def test_pages_are_uploaded_with_types_and_cache_headers_and_invalidated(
    aws: tuple[Any, Any], built: dict[str, Path]
) -> None:
    s3, cloudfront = aws
    distribution = make_distribution(cloudfront)
    upload_pages(list_pages(built), "pages", distribution, s3, cloudfront)
    stored = {}
    for entry in s3.list_objects_v2(Bucket="pages")["Contents"]:
        result = s3.get_object(Bucket="pages", Key=entry["Key"])
        stored[entry["Key"]] = result["ContentType"], result["CacheControl"], result["Body"].read()
    assert stored == {
        "app/index.html": ("text/html; charset=utf-8", CHECKED, b"index.html"),
        "app/app.js": ("text/javascript; charset=utf-8", CHECKED, b"app.js"),
        "app/assets/app-D1x9_k2Q.css": (
            "text/css; charset=utf-8",
            KEPT,
            b"assets/app-D1x9_k2Q.css",
        ),
    }
    [made] = cloudfront.list_invalidations(DistributionId=distribution)["InvalidationList"]["Items"]
    batch = cloudfront.get_invalidation(DistributionId=distribution, Id=made["Id"])
    assert batch["Invalidation"]["InvalidationBatch"]["Paths"]["Items"] == ["/app*"]


@pytest.mark.parametrize(
    ("name", "is_hashed"),
    [
        ("app-D1x9_k2Q.js", True),
        ("app-abcd-f2h.css", True),
        ("app.js", False),
        ("favicon-32x32.png", False),
        ("web-app-manifest.webmanifest", False),
    ],
)
def test_only_names_with_a_hash_are_cached_for_long(name: str, is_hashed: bool) -> None:
    assert bool(HASHED.search(name)) == is_hashed


def test_an_index_is_uploaded_after_what_it_loads(built: dict[str, Path]) -> None:
    assert [page.key for page in list_pages(built)][-1] == "app/index.html"


def test_each_file_of_the_repository_has_a_content_type() -> None:
    keys = [page.key for page in list_pages()]
    assert "app/index.html" in keys
    assert all(Path(key).suffix in TYPES for key in keys)


def test_the_edge_serves_each_page() -> None:
    config = EDGE["Edge"]["Properties"]["DistributionConfig"]
    patterns = {behavior["PathPattern"] for behavior in config["CacheBehaviors"]}
    assert patterns == {f"/{name}*" for name in BUILT}


@pytest.mark.parametrize(
    ("path", "result"),
    [
        ("/app/", "/app/index.html"),
        ("/app/posts/12", "/app/index.html"),
        ("/app/app.js", "/app/app.js"),
        ("/console/", "/console/index.html"),
    ],
)
def test_a_path_without_a_file_leads_to_its_index(path: str, result: str) -> None:
    assert run_edge_function("FindPage", {"request": {"uri": path}})["uri"] == result


def test_a_page_without_its_last_slash_is_redirected() -> None:
    """Its index names its files relative to itself."""
    answer = run_edge_function("FindPage", {"request": {"uri": "/app"}})
    assert (answer["statusCode"], answer["headers"]["location"]["value"]) == (301, "/app/")


def test_the_address_that_a_client_sent_is_overwritten() -> None:
    """Given a request that names another address, the API gets the address of its connection."""
    request = {"headers": {"x-viewer-ip": {"value": "192.0.2.7"}}}
    answer = run_edge_function(
        "ReportAddress", {"request": request, "viewer": {"ip": "203.0.113.9"}}
    )
    assert answer["headers"]["x-viewer-ip"] == {"value": "203.0.113.9"}


def run_edge_function(name: str, event: object) -> dict[str, Any]:
    """Run a function of CloudFront and return the request or the answer that it returns."""
    code = EDGE[name]["Properties"]["FunctionCode"]
    call = f"console.log(JSON.stringify(handler({json.dumps(event)})))"
    document: dict[str, Any] = json.loads(run_node("-e", code + call))
    return document
