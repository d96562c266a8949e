"""The static pages that a deploy uploads, and how the edge finds them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from cli.paths import CONTRACT, ROOT
from deploy.pages import BUILT, CHECKED, HASHED, KEPT, TYPES, list_pages, upload_pages
from plaza.infra.http.balancer_events import ALLOWED_HEADERS
from plaza.infra.http.responses import SECURITY_HEADERS
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


OLD_TLS = [
    "TLSv1:ECDHE-RSA-AES128-SHA:fullHandshake",
    "TLSv1.1:AES128-SHA:sessionResumed",
    "SSLv3:x:y",
]
NEW_TLS = ["TLSv1.2:ECDHE-RSA-AES128-GCM-SHA256:fullHandshake", "TLSv1.3:TLS_AES_128_GCM_SHA256:x"]
EVENT = {"viewer": {"ip": "203.0.113.9"}}


@pytest.mark.parametrize("name", ["FindPage", "ReportAddress"])
@pytest.mark.parametrize("tls", [*OLD_TLS, *NEW_TLS, None])
@pytest.mark.parametrize("has_domain", [True, False])
def test_without_a_domain_the_edge_refuses_old_tls_itself(
    name: str, tls: str | None, *, has_domain: bool
) -> None:
    """CloudFront's own certificate admits TLS 1.0; with a domain the certificate's policy does not,
    and CloudFront does not report the version. A request without a version is refused."""
    headers = {} if tls is None else {"cloudfront-viewer-tls": {"value": tls}}
    event = {"request": {"uri": "/app/app.js", "headers": headers}, **EVENT}
    answer = run_edge_function(name, event, has_domain=has_domain)
    is_refused = not has_domain and tls not in NEW_TLS
    assert answer.get("statusCode") == (426 if is_refused else None)


def test_cloudfront_reports_the_version_wherever_it_is_checked() -> None:
    config = EDGE["Edge"]["Properties"]["DistributionConfig"]
    for behavior in (config["DefaultCacheBehavior"], *config["CacheBehaviors"]):
        _, _, policy = behavior["OriginRequestPolicyId"]["Fn::If"]
        sent = EDGE[policy["Ref"]]["Properties"]["OriginRequestPolicyConfig"]["HeadersConfig"]
        assert sent["HeaderBehavior"] == "whitelist"
        assert "CloudFront-Viewer-TLS" in sent["Headers"]
        assert len(sent["Headers"]) <= 10, "CloudFront's quota"
        [function] = behavior["FunctionAssociations"]
        code = EDGE[function["FunctionARN"]["Fn::GetAtt"].partition(".")[0]]
        assert code["Properties"]["FunctionCode"]["Fn::Sub"][1] == {
            "ChecksTls": {"Fn::If": ["HasDomain", "false", "true"]}
        }


def test_a_domain_has_no_older_tls_than_1_2() -> None:
    certificate = EDGE["Edge"]["Properties"]["DistributionConfig"]["ViewerCertificate"]
    text = json.dumps(certificate)
    assert text.count('"MinimumProtocolVersion": "TLSv1.2_2021"') == 2
    assert text.count("AcmCertificateArn") == 2
    for origin in EDGE["Edge"]["Properties"]["DistributionConfig"]["Origins"]:
        if "CustomOriginConfig" in origin:
            assert origin["CustomOriginConfig"]["OriginSSLProtocols"] == ["TLSv1.2"]


def test_the_edge_passes_each_header_that_functions_read() -> None:
    """Given no domain. What is missing was never sent, for a function."""
    config = EDGE["ApiHeadersAndTls"]["Properties"]["OriginRequestPolicyConfig"]
    cached = EDGE["ApiCache"]["Properties"]["CachePolicyConfig"]
    keyed = cached["ParametersInCacheKeyAndForwardedToOrigin"]["HeadersConfig"]["Headers"]
    passed = {name.lower() for name in (*config["HeadersConfig"]["Headers"], *keyed)}
    allowed = set(ALLOWED_HEADERS.split(","))
    contract = json.loads(CONTRACT.read_text())
    declared = {
        parameter["name"].lower()
        for operations in contract["paths"].values()
        for operation in operations.values()
        for parameter in operation.get("parameters", [])
        if parameter["in"] == "header"
    }
    assert allowed | declared | {"plaza-user", "x-viewer-ip"} <= passed


def test_only_pages_redirect_to_https() -> None:
    """A redirect of the API would hide that a client sent its token in clear."""
    config = EDGE["Edge"]["Properties"]["DistributionConfig"]
    assert config["DefaultCacheBehavior"]["ViewerProtocolPolicy"] == "https-only"
    assert {b["ViewerProtocolPolicy"] for b in config["CacheBehaviors"]} == {"redirect-to-https"}


def test_the_edge_caches_for_each_session_apart_and_passes_no_cookie() -> None:
    config = EDGE["ApiCache"]["Properties"]["CachePolicyConfig"]
    keyed = config["ParametersInCacheKeyAndForwardedToOrigin"]
    assert "authorization" in keyed["HeadersConfig"]["Headers"]
    passed = EDGE["ApiHeadersAndTls"]["Properties"]["OriginRequestPolicyConfig"]
    for policy in (keyed, passed):
        assert policy["CookiesConfig"] == {"CookieBehavior": "none"}


def run_edge_function(name: str, event: Any, *, has_domain: bool = True) -> dict[str, Any]:
    """Run a function of CloudFront and return the request or the answer that it returns."""
    code, values = EDGE[name]["Properties"]["FunctionCode"]["Fn::Sub"]
    for variable, value in values.items():
        code = code.replace(f"${{{variable}}}", value["Fn::If"][1 if has_domain else 2])
    assert "${" not in code
    event["request"].setdefault("headers", {})
    call = f"console.log(JSON.stringify(handler({json.dumps(event)})))"
    document: dict[str, Any] = json.loads(run_node("-e", code + call))
    return document


# ---------------------------------------------------------------- headers of responses


def read_headers(policy: str) -> dict[str, str]:
    """Return the headers that a policy of the edge adds, as they are sent."""
    config = EDGE[policy]["Properties"]["ResponseHeadersPolicyConfig"]["SecurityHeadersConfig"]
    assert all(header["Override"] is True for header in config.values())
    transport = config["StrictTransportSecurity"]
    return {
        "strict-transport-security": f"max-age={transport['AccessControlMaxAgeSec']}"
        + ("; includeSubDomains" if transport["IncludeSubdomains"] else ""),
        "x-content-type-options": "nosniff" if "ContentTypeOptions" in config else "",
        "content-security-policy": config["ContentSecurityPolicy"]["ContentSecurityPolicy"].strip(),
    }


def test_the_edge_sends_the_headers_of_the_functions_on_all_responses_of_the_api() -> None:
    behavior = EDGE["Edge"]["Properties"]["DistributionConfig"]["DefaultCacheBehavior"]
    assert read_headers(behavior["ResponseHeadersPolicyId"]["Ref"]) == SECURITY_HEADERS


@pytest.mark.parametrize("policy", ["ApiHeaders", "PageHeaders"])
def test_the_edge_sends_a_referrer_to_nowhere(policy: str) -> None:
    config = EDGE[policy]["Properties"]["ResponseHeadersPolicyConfig"]["SecurityHeadersConfig"]
    assert config["ReferrerPolicy"]["ReferrerPolicy"] == "no-referrer"


def test_browsers_keep_to_tls_for_more_than_a_year() -> None:
    sent = SECURITY_HEADERS["strict-transport-security"]
    [seconds] = re.findall(r"max-age=(\d+)", sent)
    assert int(seconds) >= 365 * 86_400
    assert "includeSubDomains" in sent


def test_a_browser_takes_no_response_of_the_api_for_a_page() -> None:
    assert SECURITY_HEADERS["x-content-type-options"] == "nosniff"
    assert SECURITY_HEADERS["content-security-policy"].startswith("default-src 'none';")


@pytest.mark.parametrize("name", BUILT)
def test_a_page_connects_to_the_api_only_and_is_in_no_frame(name: str) -> None:
    """The header has what the page's own policy has, and what only a header can have."""
    behaviors = EDGE["Edge"]["Properties"]["DistributionConfig"]["CacheBehaviors"]
    [behavior] = [b for b in behaviors if b["PathPattern"] == f"/{name}*"]
    headers = read_headers(behavior["ResponseHeadersPolicyId"]["Ref"])
    assert headers["strict-transport-security"] == SECURITY_HEADERS["strict-transport-security"]
    assert headers["x-content-type-options"] == "nosniff"
    sent = split_policy(headers["content-security-policy"])
    assert sent["connect-src"] == "'self'", "the origin of the edge, which is the API's, too"
    page = (BUILT[name] / "index.html").read_text()
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert sent == split_policy(policy) | {"frame-ancestors": "'none'", "object-src": "'none'"}


def split_policy(policy: str) -> dict[str, str]:
    parts = (part.strip().partition(" ") for part in policy.split(";"))
    return {name: value for name, _, value in parts}
