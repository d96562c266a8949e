"""Verify what devices sign. Only the function of sign-in has the package of this module."""

from __future__ import annotations

from typing import NamedTuple

import webauthn
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import CredentialDeviceType

from plaza.people.auth.passkeys import (
    Assertion,
    NewPasskey,
    Passkey,
    PasskeyRefused,
    decode,
    encode,
)
from plaza.people.auth.settings import PasskeySettings


class VerifiedPasskey(NamedTuple):
    """A new passkey that its device made for a challenge of this deployment."""

    credential_id: bytes
    public_key: bytes
    sign_count: int
    may_be_synced: bool


def verify_new(made: NewPasskey, challenge: str, config: PasskeySettings) -> VerifiedPasskey:
    """Return a new passkey, whose user the device has verified. Raises PasskeyRefused."""
    credential_id = _find_credential_id(made.attestation)
    try:
        verified = webauthn.verify_registration_response(
            credential={
                "id": encode(credential_id),
                "rawId": encode(credential_id),
                "type": "public-key",
                "response": {
                    "clientDataJSON": made.client_data,
                    "attestationObject": made.attestation,
                },
            },
            expected_challenge=decode(challenge),
            expected_rp_id=config.rp_id,
            expected_origin=config.require_origin(),
            require_user_verification=True,
        )
    except (WebAuthnException, ValueError, TypeError, KeyError) as error:
        raise PasskeyRefused from error
    return VerifiedPasskey(
        verified.credential_id,
        verified.credential_public_key,
        verified.sign_count,
        verified.credential_device_type == CredentialDeviceType.MULTI_DEVICE,
    )


def verify_assertion(
    assertion: Assertion, passkey: Passkey, challenge: str, config: PasskeySettings
) -> int:
    """Return the new counter of a passkey that signed ``challenge``, whose user the device has
    verified. Raises PasskeyRefused, also for a counter that is not greater: a copy of the device,
    unless its passkey is one that devices of the user share, each with a counter of its own."""
    try:
        verified = webauthn.verify_authentication_response(
            credential={
                "id": encode(passkey.credential_id),
                "rawId": encode(passkey.credential_id),
                "type": "public-key",
                "response": {
                    "clientDataJSON": assertion.client_data,
                    "authenticatorData": assertion.authenticator_data,
                    "signature": assertion.signature,
                    "userHandle": assertion.user_handle,
                },
            },
            expected_challenge=decode(challenge),
            expected_rp_id=config.rp_id,
            expected_origin=config.require_origin(),
            credential_public_key=passkey.public_key,
            credential_current_sign_count=0,  # compared below
            require_user_verification=True,
        )
    except (WebAuthnException, ValueError, TypeError, KeyError) as error:
        raise PasskeyRefused from error
    is_shared = verified.credential_backed_up and passkey.may_be_synced
    is_greater = verified.new_sign_count > passkey.sign_count
    if not (is_shared or is_greater or verified.new_sign_count == passkey.sign_count == 0):
        raise PasskeyRefused
    return verified.new_sign_count


def _find_credential_id(attestation: str) -> bytes:
    try:
        parsed = webauthn.helpers.parse_attestation_object(decode(attestation))
    except (WebAuthnException, ValueError, TypeError, KeyError) as error:
        raise PasskeyRefused from error
    data = parsed.auth_data.attested_credential_data
    if data is None:
        raise PasskeyRefused
    return data.credential_id
