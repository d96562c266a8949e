"""The key pair with which a stack on one machine signs push messages."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from local.stack import kept
from local.stack.aws import connect

KEY = "push-key.json"
SECRET = "PushKey"


def choose_parameters(directory: Path) -> dict[str, str]:
    """Return the parameters of the template that let a stack push; its first start makes the key,
    so that subscriptions of browsers stay valid."""
    file = directory / KEY
    if not file.exists():
        key = ec.generate_private_key(ec.SECP256R1())
        point = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        public = base64.urlsafe_b64encode(point).rstrip(b"=").decode()
        kept.write_private(file, {"public": public, "pem": pem.decode()})
    public = json.loads(file.read_text())["public"]
    return {"PushPublicKey": public, "PushContact": "mailto:developer@plaza.example"}


def store_key(directory: Path, endpoint_url: str, arns: Mapping[str, str]) -> None:
    """Store the private key in its secret, one of ``arns`` (logical id -> ARN)."""
    pem = json.loads((directory / KEY).read_text())["pem"]
    secrets = connect("secretsmanager", endpoint_url)
    secrets.put_secret_value(SecretId=arns[SECRET], SecretString=pem)
