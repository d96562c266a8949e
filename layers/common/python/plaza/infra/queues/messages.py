"""Codecs of messages: bodies are compact JSON."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from msgspec.json import Decoder

from plaza.infra.runtime.codec import Codec, Struct, Undecodable, json_functions
from plaza.infra.runtime.errors import UnknownProtocol

T = TypeVar("T")


class InvalidMessage(Undecodable):
    """A message that cannot be decoded; a retry does not help."""


class _Protocol(Struct, frozen=True, gc=False):
    protocol: int


_read_protocol = Decoder(_Protocol).decode


class MessageCodec(Codec[T]):
    """The encoding of the bodies of one queue. ``decode`` raises InvalidMessage."""

    error = InvalidMessage
    protocol: int | None = None

    def decode(self, text: str) -> T:
        """Return the message of a body. Raises InvalidMessage, UnknownProtocol."""
        try:
            return super().decode(text)
        except InvalidMessage:
            if self.protocol is not None:
                self._check_protocol(self.protocol, text)
            raise

    def _check_protocol(self, protocol: int, text: str) -> None:
        with suppress(ValueError, RecursionError):
            if (sent := _read_protocol(text).protocol) != protocol:
                raise UnknownProtocol(f"a message of protocol {sent}")


def message_codec(
    queue: str,
    encoded: Any,
    unpack: Callable[[Any], T] | None = None,
    pack: Callable[[T], Any] | None = None,
    protocol: int | None = None,
) -> MessageCodec[T]:
    """Return the codec of the messages of ``queue``; see ``json_codec``.

    With a ``protocol``, the type ``encoded`` accepts that number only in its field ``protocol``. A
    message of another one raises UnknownProtocol: a later delivery may bring it to a version of
    Plaza that reads it.
    """
    codec = MessageCodec(queue, *json_functions(encoded, unpack, pack))
    codec.protocol = protocol
    return codec
