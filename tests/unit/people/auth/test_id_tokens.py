"""ID tokens: only what an accepted issuer signed for this deployment is believed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from plaza.infra.aws import secrets
from plaza.infra.aws.secrets import SecretsDown
from plaza.infra.runtime import clock
from plaza.infra.runtime.process import reset_process
from plaza.people.auth import id_tokens
from plaza.people.auth.issuers import (
    ISSUER_KEYS,
    IdTokenRefused,
    IssuerKeys,
    parse_issuers,
    select_keys,
)
from plaza.people.auth.settings import identity_settings
from tests.support.issuer import (
    AUDIENCE,
    ISSUERS,
    URL,
    FakeIssuer,
    encode_part,
    make_ec,
    make_rsa,
)

OTHER = "https://other.example"


class Secret:
    """The secret with the keys, and how often it was read."""

    def __init__(self, text: str) -> None:
        self.text, self.reads, self.is_down = text, 0, False

    def fetch(self, secret_id: str) -> str:
        assert secret_id == "issuer-keys"
        self.reads += 1
        if self.is_down:
            raise SecretsDown("down")
        return self.text


@pytest.fixture
def issuer() -> FakeIssuer:
    return FakeIssuer()


@pytest.fixture
def secret(issuer: FakeIssuer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Secret]:
    """This deployment accepts ``issuer``, whose keys it has."""
    stored = Secret(issuer.stored())
    monkeypatch.setenv("PLAZA_IDENTITY_ISSUERS", ISSUERS)
    monkeypatch.setenv("PLAZA_ISSUER_KEYS_ID", "issuer-keys")
    monkeypatch.setattr(secrets, "_fetch", stored.fetch)
    reset_process()
    yield stored
    reset_process()


def let_pass(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let the monotonic clock of the process go forward."""
    before = clock.monotonic_s
    monkeypatch.setattr(clock, "monotonic_s", lambda: before() + seconds)


def refuse(token: str, nonce: str | None = None) -> str:
    """Return why a token is refused."""
    with pytest.raises(IdTokenRefused) as refused:
        id_tokens.verify(token, nonce)
    return str(refused.value)


pytestmark = pytest.mark.usefixtures("secret")


@pytest.mark.parametrize("kid", ["r1", "e1"])
def test_a_token_of_an_accepted_issuer_is_believed(issuer: FakeIssuer, kid: str) -> None:
    verified = id_tokens.verify(issuer.sign(kid), None)
    assert (verified.issuer, verified.subject) == (URL, "ann")
    assert 600 < verified.expires_in_s <= 660


# ---------------------------------------------------------------- signatures


def test_a_token_without_a_signature_is_refused(issuer: FakeIssuer) -> None:
    unsigned = jwt.encode(issuer.claims(), "", algorithm="none", headers={"kid": "e1"})
    assert "RS256 or ES256" in refuse(unsigned)
    for algorithm in ("none", "None", "NONE", "nOnE", ""):
        header = {"alg": algorithm, "kid": "e1", "typ": "JWT"}
        token = ".".join((encode_part(header), encode_part(issuer.claims()), ""))
        refuse(token)
        refuse(token + encode_part(b"x"))


def test_a_public_key_is_no_secret_of_a_hash(issuer: FakeIssuer) -> None:
    """RS256 -> HS256: the signature is an HMAC whose key is the public key, in any form."""
    public = make_rsa("r1").public_key()
    forms = [
        public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.PKCS1),
        public.public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        ),
        public.public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        ),
        json.dumps(issuer.key_set()["keys"][0]).encode(),
        issuer.key_set()["keys"][0]["n"].encode(),
        b"",
    ]
    for algorithm in ("HS256", "RS256"):
        head = encode_part({"alg": algorithm, "kid": "r1"})
        signed = f"{head}.{encode_part(issuer.claims())}"
        for key in forms:
            mac = hmac.digest(key, signed.encode(), "sha256")
            refuse(f"{signed}.{encode_part(mac)}")


@pytest.mark.parametrize("algorithm", ["RS384", "RS512", "PS256"])
def test_another_algorithm_of_the_same_key_is_refused(issuer: FakeIssuer, algorithm: str) -> None:
    token = jwt.encode(issuer.claims(), make_rsa("r1"), algorithm=algorithm, headers={"kid": "r1"})
    assert "RS256 or ES256" in refuse(token)


def test_a_key_verifies_only_the_algorithm_of_its_kind(issuer: FakeIssuer) -> None:
    as_ec = jwt.encode(issuer.claims(), make_ec("e1"), algorithm="ES256", headers={"kid": "r1"})
    as_rsa = jwt.encode(issuer.claims(), make_rsa("r1"), algorithm="RS256", headers={"kid": "e1"})
    assert "not known" in refuse(as_ec)
    assert "not known" in refuse(as_rsa)


def test_a_key_in_the_token_itself_is_ignored(issuer: FakeIssuer) -> None:
    """``jwk``, ``jku`` and ``x5u`` of a header would let a token choose its key."""
    own = FakeIssuer(keys={"e1": make_ec("attacker")})
    for header in (
        {"jwk": own.key_set()["keys"][0]},
        {"jku": "https://evil.example/keys"},
        {"x5u": "https://evil.example/keys"},
    ):
        assert "wrong signature" in refuse(own.sign("e1", header=header))


@pytest.mark.parametrize("kid", [None, "", "e2", "E1", "e1 ", "../e1", "e1\x00", 1, ["e1"], {}])
def test_an_unknown_key_id_is_refused(issuer: FakeIssuer, kid: Any) -> None:
    head = {"alg": "ES256", "kid": kid} if kid is not None else {"alg": "ES256"}
    signed = f"{encode_part(head)}.{encode_part(issuer.claims())}"
    refuse(complete(signed))


def complete(signed: str) -> str:
    """Return a token with a correct signature of ``signed`` by the key e1."""
    r, s = decode_dss_signature(make_ec("e1").sign(signed.encode(), ec.ECDSA(SHA256())))
    return f"{signed}.{encode_part(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def test_a_key_of_another_issuer_is_refused(
    secret: Secret, issuer: FakeIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each issuer signs for itself only, also with an equal key id."""
    other = FakeIssuer(OTHER, keys={"e1": make_ec("other")})
    monkeypatch.setenv("PLAZA_IDENTITY_ISSUERS", f"{ISSUERS},{OTHER}|{AUDIENCE}")
    secret.text = ISSUER_KEYS.encode(
        IssuerKeys({i.url: select_keys(i.key_set()) for i in (issuer, other)})
    )
    reset_process()
    assert id_tokens.verify(other.sign(), None).issuer == OTHER
    assert "wrong signature" in refuse(other.sign(iss=URL))
    assert "wrong signature" in refuse(issuer.sign(iss=OTHER))


def test_a_changed_token_is_refused(issuer: FakeIssuer) -> None:
    head, _, signature = issuer.sign().split(".")
    refuse(".".join((head, encode_part(issuer.claims(sub="bob")), signature)))
    old = issuer.claims(exp=1)
    assert "wrong signature" in refuse(".".join((head, encode_part(old), signature))), "comes first"
    token = issuer.sign()
    refuse(token[:-4] + ("AAAA" if token[-4:] != "AAAA" else "BBBB"))
    refuse(token + "AAAA")


def test_a_token_that_is_completed_here_is_believed(issuer: FakeIssuer) -> None:
    signed = f"{encode_part({'alg': 'ES256', 'kid': 'e1'})}.{encode_part(issuer.claims())}"
    assert id_tokens.verify(complete(signed), None).subject == "ann"


@pytest.mark.parametrize(
    "header", [{"crit": ["exp"]}, {"crit": []}, {"crit": ["b64"], "b64": False}]
)
def test_critical_extensions_are_refused(issuer: FakeIssuer, header: dict[str, Any]) -> None:
    head = encode_part({"alg": "ES256", "kid": "e1", **header})
    signed = f"{head}.{encode_part(issuer.claims())}"
    refuse(complete(signed))


@pytest.mark.parametrize(
    "token",
    [
        "",
        "a",
        "a.b",
        "a.b.c",
        "..",
        "a.b.c.d",
        "e30.e30.",
        "e30.e30.e30",
        "W10.W10.W10",
        encode_part({"alg": "ES256", "kid": "e1"}) + "." + encode_part(b"[" * 5000) + ".AA",
        encode_part(b"[" * 5000) + "." + encode_part({}) + ".AA",
        encode_part({"alg": ["ES256"], "kid": "e1"}) + "." + encode_part({"iss": URL}) + ".AA",
        encode_part({"alg": "ES256", "kid": "e1"}) + "." + encode_part({"iss": [URL]}) + ".AA",
        encode_part({"alg": "ES256", "kid": "e1"}) + "." + encode_part(b'{"iss": 1e999}') + ".AA",
        encode_part({"alg": "ES256", "kid": "e1"}) + "." + encode_part({"iss": URL}) + ".AA",
        encode_part({"alg": "ES256", "kid": "\ud800"}) + "." + encode_part({"iss": URL}) + ".AA",
    ],
)
def test_what_is_not_a_token_is_refused(token: str) -> None:
    refuse(token)


# ---------------------------------------------------------------- claims


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"iss": OTHER}, "issuer"),
        ({"iss": f"{URL}/"}, "issuer"),
        ({"iss": None}, "issuer"),
        ({"iss": URL.upper()}, "issuer"),
        ({"aud": "another-app"}, "audience"),
        ({"aud": None}, "claim"),
        ({"aud": []}, "claim"),
        ({"aud": ""}, "claim"),
        ({"aud": AUDIENCE.upper()}, "audience"),
        ({"aud": {"plaza-app": 1}}, "claim|audience"),
        ({"aud": [AUDIENCE, "another-app"]}, "requested by another"),
        ({"aud": [AUDIENCE, "another-app"], "azp": "another-app"}, "requested by another"),
        ({"exp": None}, "claim"),
        ({"iat": None}, "claim"),
        ({"sub": None}, "claim"),
        ({"sub": 7}, "claim"),
        ({"sub": ""}, "subject"),
        ({"sub": "a" * 256}, "subject"),
        ({"sub": "ann\n"}, "subject"),
        ({"sub": "ann "}, "subject"),
        ({"sub": " ann"}, "subject"),
        ({"sub": "änn"}, "subject"),
        ({"exp": "never"}, "claim"),
    ],
)
def test_a_claim_that_does_not_fit_is_refused(
    issuer: FakeIssuer, changes: dict[str, Any], reason: str
) -> None:
    token = issuer.sign(**changes)
    assert re.search(reason, refuse(token))


def test_several_audiences_need_one_that_asked(issuer: FakeIssuer) -> None:
    token = issuer.sign(aud=[AUDIENCE, "another-app"], azp=AUDIENCE)
    assert id_tokens.verify(token, None).subject == "ann"
    assert id_tokens.verify(issuer.sign(aud=[AUDIENCE]), None).subject == "ann"


@pytest.mark.parametrize(
    ("claim", "offset_s", "is_accepted"),
    [
        ("exp", -50, True),
        ("exp", -70, False),
        ("iat", 50, True),
        ("iat", 70, False),
        ("nbf", 50, True),
        ("nbf", 70, False),
        ("exp", 86_000, True),
        ("exp", 90_000, False),
    ],
)
def test_clocks_may_differ_by_a_minute(
    issuer: FakeIssuer, claim: str, offset_s: int, is_accepted: bool
) -> None:
    token = issuer.sign(**{claim: issuer.claims()["iat"] + offset_s})
    if is_accepted:
        id_tokens.verify(token, None)
    else:
        refuse(token)


def test_an_expired_token_says_so(issuer: FakeIssuer) -> None:
    assert "expired" in refuse(issuer.sign(exp=issuer.claims()["iat"] - 90))


# ---------------------------------------------------------------- nonces, names


def test_a_token_without_a_nonce_is_refused_where_one_is_required(
    issuer: FakeIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAZA_IDENTITY_ISSUERS", f"{URL}|{AUDIENCE}|nonce")
    identity_settings.cache_clear()
    assert id_tokens.verify(issuer.sign(nonce="n1"), "n1")
    assert "has no nonce" in refuse(issuer.sign())
    assert "nonce" in refuse(issuer.sign(nonce="n1"))


def test_a_nonce_belongs_to_its_token(issuer: FakeIssuer) -> None:
    plain, hashed = issuer.sign(nonce="n1"), issuer.sign(nonce=hashlib.sha256(b"n1").hexdigest())
    for token in (plain, hashed):
        assert id_tokens.verify(token, "n1").subject == "ann"
        for wrong in (None, "", "n2", "N1", "ö", "\ud800"):
            assert "nonce" in refuse(token, wrong)
    assert "nonce" in refuse(issuer.sign(), "n1")
    assert "nonce" in refuse(issuer.sign(nonce=1), "1")
    assert "nonce" in refuse(issuer.sign(nonce=["n1"]), "n1")
    assert "nonce" in refuse(hashed, None)


def test_tokens_with_the_same_nonce_have_one_name(issuer: FakeIssuer) -> None:
    names = [
        id_tokens.verify(issuer.sign(nonce="n1", extra=extra), "n1").name for extra in ("a", "b")
    ]
    assert len(set(names)) == 1
    other = id_tokens.verify(issuer.sign(nonce="n1", sub="bob"), "n1").name
    assert other not in names, "another subject cannot use up the nonce"


def test_another_valid_signature_gives_no_second_token(issuer: FakeIssuer) -> None:
    """(r, -s) is a signature of ES256 as well as (r, s)."""
    token = issuer.sign()
    signed, _, signature = token.rpartition(".")
    data = base64.urlsafe_b64decode(signature + "==")
    r, s = (int.from_bytes(half, "big") for half in (data[:32], data[32:]))
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    other = f"{signed}.{encode_part(r.to_bytes(32, 'big') + (order - s).to_bytes(32, 'big'))}"
    assert other != token
    names = {id_tokens.verify(each, None).name for each in (token, other)}
    assert len(names) == 1


# ---------------------------------------------------------------- keys that change


def test_a_new_key_is_read_once_a_minute_and_then_believed(
    secret: Secret, issuer: FakeIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_tokens.verify(issuer.sign(), None)
    issuer.keys["e2"] = make_ec("e2")
    for _ in range(3):
        assert "not known" in refuse(issuer.sign("e2"))
    assert secret.reads == 1, "an unknown key id is asked for once a minute"
    secret.text = issuer.stored()
    let_pass(monkeypatch, id_tokens.MIN_KEYS_AGE_S + 1)
    assert id_tokens.verify(issuer.sign("e2"), None).subject == "ann"
    assert secret.reads == 2


def test_a_withdrawn_key_is_believed_for_five_minutes_at_most(
    secret: Secret, issuer: FakeIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = issuer.sign("e1")
    id_tokens.verify(token, None)
    del issuer.keys["e1"]
    secret.text = issuer.stored()
    let_pass(monkeypatch, id_tokens.MAX_KEYS_AGE_S + 1)
    assert "not known" in refuse(token)


def test_without_secrets_manager_known_keys_stay(
    secret: Secret, issuer: FakeIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_tokens.verify(issuer.sign(), None)
    secret.is_down = True
    let_pass(monkeypatch, id_tokens.MAX_KEYS_AGE_S + 1)
    for _ in range(3):
        assert id_tokens.verify(issuer.sign(), None).subject == "ann"
    assert secret.reads == 2, "it is not asked with each sign-in"
    reset_process()
    with pytest.raises(SecretsDown):
        id_tokens.verify(issuer.sign(), None)


@pytest.mark.parametrize("text", ["", "{}", "[]", "the secret", '{"issuers": {}}'])
def test_without_keys_no_token_is_believed(secret: Secret, issuer: FakeIssuer, text: str) -> None:
    secret.text = text
    assert "not known" in refuse(issuer.sign())


def test_without_issuers_no_token_is_believed(
    issuer: FakeIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PLAZA_IDENTITY_ISSUERS")
    reset_process()
    assert identity_settings().issuers == ()
    assert "not accepted" in refuse(issuer.sign())


def test_an_algorithm_of_a_key_set_is_not_believed_for_another_kind(
    secret: Secret, issuer: FakeIssuer
) -> None:
    """A secret that has a symmetric key does not make one of a public key."""
    secret.text = json.dumps(
        {"issuers": {URL: [{"kty": "oct", "kid": "h1", "k": encode_part(b"x" * 32)}]}}
    )
    token = jwt.encode(issuer.claims(), b"x" * 32, algorithm="HS256", headers={"kid": "h1"})
    assert "RS256 or ES256" in refuse(token)
    as_ec = jwt.encode(issuer.claims(), make_ec("e1"), algorithm="ES256", headers={"kid": "h1"})
    assert "not known" in refuse(as_ec)


def test_a_broken_key_refuses_its_tokens_only(secret: Secret, issuer: FakeIssuer) -> None:
    """A point that is not on the curve has the right length."""
    keys = json.loads(issuer.stored())
    point = {"kty": "EC", "kid": "bad", "crv": "P-256", "x": "A" * 43, "y": "A" * 43}
    keys["issuers"][URL].append(point)
    secret.text = json.dumps(keys)
    bad = jwt.encode(issuer.claims(), make_ec("e1"), algorithm="ES256", headers={"kid": "bad"})
    assert "wrong signature" in refuse(bad)
    assert id_tokens.verify(issuer.sign(), None).subject == "ann"


# ---------------------------------------------------------------- key sets and settings


def test_only_keys_that_sign_are_taken(issuer: FakeIssuer) -> None:
    rsa_key, ec_key = issuer.key_set()["keys"]
    short = FakeIssuer(keys={"s": make_rsa("short", 1024)}).key_set()["keys"][0]
    unusable: list[Any] = [
        None,
        "key",
        {},
        {"kty": "oct", "kid": "h", "k": "AAAA"},
        rsa_key | {"use": "enc"},
        rsa_key | {"alg": "HS256"},
        rsa_key | {"alg": "RS512"},
        rsa_key | {"kid": None},
        rsa_key | {"kid": "a" * 201},
        rsa_key | {"kid": "a\n"},
        rsa_key | {"n": "AQAB"},
        rsa_key | {"n": "A" * 400},
        rsa_key | {"n": rsa_key["n"] + "="},
        rsa_key | {"e": ""},
        ec_key | {"crv": "P-384"},
        ec_key | {"crv": "secp256k1"},
        ec_key | {"x": ec_key["x"][:-2]},
        ec_key | {"kty": "RSA"},
        short,
    ]
    assert select_keys({"keys": unusable}) == []
    taken = select_keys({"keys": [*unusable, rsa_key, ec_key]})
    assert [key.kid for key in taken] == ["r1", "e1"]
    others: list[Any] = [[], None, {}, {"keys": {}}, {"keys": None}]
    for text in others:
        with pytest.raises(ValueError, match="no list of keys"):
            select_keys(text)


def test_private_parts_of_keys_are_not_stored(issuer: FakeIssuer) -> None:
    [key] = select_keys({"keys": [issuer.key_set()["keys"][1] | {"d": "secret"}]})
    assert "secret" not in repr(key)


def test_issuers_are_https_urls_with_an_audience() -> None:
    parsed = parse_issuers(
        "https://a.example|one, https://b.example/x|app two,https://a.example|three", is_local=False
    )
    assert [(i.url, i.audiences) for i in parsed] == [
        ("https://a.example", ("one", "three")),
        ("https://b.example/x", ("app two",)),
    ]
    assert parse_issuers("", is_local=False) == ()


def test_an_issuer_whose_tokens_need_a_nonce_has_a_third_part() -> None:
    parsed = parse_issuers(
        "https://a.example|one,https://a.example|two|nonce,https://b.example|one", is_local=False
    )
    assert [(i.url, i.requires_nonce) for i in parsed] == [
        ("https://a.example", True),
        ("https://b.example", False),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "https://a.example",
        "https://a.example|",
        "https://a.example|app|",
        "https://a.example|app|nonce|x",
        "https://a.example|app|Nonce",
        "|app",
        "http://a.example|app",
        "http://127.0.0.1:1|app",
        "ftp://a.example|app",
        "https://|app",
        "https://user:pass@a.example|app",
        "https://a.example#x|app",
        "https://a.example?x=1|app",
        "https://a.example:port|app",
        "https://a.example/" + "a" * 200 + "|app",
        ",".join(f"https://{n}.example|app" for n in range(11)),
    ],
)
def test_any_other_setting_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each for a reason of its own
        parse_issuers(text, is_local=False)


def test_a_local_issuer_may_have_http_on_loopback_only() -> None:
    assert parse_issuers("http://127.0.0.1:1/x|app", is_local=True)
    with pytest.raises(ValueError, match="https"):
        parse_issuers("http://10.0.0.1:1/x|app", is_local=True)
