"""Shops: what is shown of them, where they are, what is said of them on the queue. No I/O."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

from plaza.infra import messages
from plaza.infra.errors import BadInput, Conflict, Gone, NotFound
from plaza.infra.messages import ID, InvalidMessage, integer, list_of, nullable, one_of, read, text

MAX_LATITUDE = 85.05112878  # of a GEO set, as of a web map: the poles are infinitely far there
MAX_LONGITUDE = 180.0
MAX_RADIUS_M = 50_000
MAX_NEARBY_SHOPS = 1_000  # the longest list of what is near
MAX_SHOPS_PER_MESSAGE = 100  # of one message
REMOVED_VERSION = 2**53 - 1  # newer than everything: a row that was taken out of MySQL stays away
FILTER, PLACES, EVERYTHING = "filter", "places", "everything"
_JOBS = (FILTER, PLACES, EVERYTHING)
_DELETED = "deleted"
_MAX_BUILD = 64  # characters of the name of a build


class ShopMissing(NotFound):
    """There is no such shop."""


class ShopDeleted(Gone):
    """The shop was deleted."""


class TypeMissing(NotFound):
    """There is no such type of shops."""


class TypeUnknown(BadInput):
    """A shop can't be of a type that there isn't."""


class TypeInUse(Conflict):
    """A type that shops have is not deleted."""

    slug = "type-in-use"
    title = "Shop type in use"


class ShopType(NamedTuple):
    """A kind of shops, as ``food``; ``icon`` is a URL."""

    id: int
    name: str
    icon: str | None


class ShopTypeDraft(NamedTuple):
    """What an admin sends of a type of shops. The lowest ``sort`` is shown first."""

    name: str
    icon: str | None = None
    sort: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopDraft:
    """What an admin says of a shop. ``x`` (longitude) and ``y`` (latitude) in degrees: both or
    neither, a shop without them is near nobody. ``avg_price_cents``: what one person pays."""

    name: str
    type_id: int | None = None
    area: str | None = None
    address: str | None = None
    x: float | None = None
    y: float | None = None
    images: tuple[str, ...] = ()
    avg_price_cents: int | None = None
    open_hours: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop(ShopDraft):
    """A shop. ``created_us``, ``updated_us``: microseconds since 1970, by the database's clock."""

    id: int
    created_us: int
    updated_us: int


class StoredShop(NamedTuple):
    """A shop as MySQL has it, at version ``version``."""

    shop: Shop
    version: int
    deleted: bool

    def to_text(self) -> str:
        """As it stands in Redis."""
        return _DELETED if self.deleted else json.dumps(asdict(self.shop), separators=(",", ":"))


def decode_shop(text: str) -> Shop | None:
    """What ``to_text`` wrote; None for what was deleted."""
    if text == _DELETED:
        return None
    fields = json.loads(text)
    return Shop(**fields | {"images": tuple(fields["images"])})


class Place(NamedTuple):
    """A point: longitude and latitude in degrees."""

    x: float
    y: float


class ShopPlace(NamedTuple):
    """Where a shop is at a version of it; None: nowhere, or not any more. A shop without a version
    was taken out of MySQL."""

    shop_id: int
    version: int | None
    place: Place | None


class ShopDistance(NamedTuple):
    """A shop around a place: how far it is, in tenths of a millimetre. Lists are in this order."""

    distance: int
    shop_id: int

    @property
    def distance_m(self) -> float:
        """Metres, to the decimetre: GEO sets know no better."""
        return round(self.distance / 10_000, 1)


LIST_START = ShopDistance(-1, 0)  # a list begins behind it


class NearPosition(NamedTuple):
    """Where a page of near me ends: its last shop, and how many were listed up to it."""

    distance: int
    shop_id: int
    listed: int

    @property
    def last_shop(self) -> ShopDistance:
        """The last shop of the page."""
        return ShopDistance(self.distance, self.shop_id)


class Area(NamedTuple):
    """What is near: ``radius_m`` around ``place``, of one type of shops or (None) of all."""

    place: Place
    radius_m: int
    type_id: int | None

    def to_text(self) -> str:
        """What a cursor is signed for: equal for equal areas only."""
        return f"{self.place.x!r} {self.place.y!r} {self.radius_m} {self.type_id}"


def place_of(x: float | None, y: float | None) -> Place | None:
    """The place of a shop; None without one, and for one that no GEO set takes."""
    if x is None or y is None or abs(x) > MAX_LONGITUDE or abs(y) > MAX_LATITUDE:
        return None
    return Place(x, y)


def shop_place_of(stored: StoredShop) -> ShopPlace:
    """Where the shop is now."""
    place = None if stored.deleted else place_of(stored.shop.x, stored.shop.y)
    return ShopPlace(stored.shop.id, stored.version, place)


class ShopChange(NamedTuple):
    """A row of a shop that was changed: the versions before and after, None where there was none.

    Who changed it past the API left the version as it was.
    """

    shop_id: int
    before: int | None
    after: int | None


class ShopRefresh(NamedTuple):
    """Shops of which Redis is to be told what MySQL has; none: their types."""

    shop_ids: Sequence[int]

    def to_json(self) -> str:
        """As it stands on the queue."""
        return messages.encode({"shop_ids": list(self.shop_ids)})


class ShopJobStep(NamedTuple):
    """How far a job on all shops is: to build the Bloom filter, to build the places of a
    type (None: of all), or to tell Redis everything. ``build``: the name it has in Redis, '' for
    one that has not begun; ``after_id``: the last shop it was at."""

    job: str
    type_id: int | None = None
    build: str = ""
    after_id: int = 0

    def to_json(self) -> str:
        """As it stands on the queue."""
        return messages.encode(self._asdict())


class NearShop(NamedTuple):
    """A shop, and how far it is."""

    shop: Shop
    distance_m: float


class NearPage(NamedTuple):
    """A page of what is near, and where the next begins (None: the end)."""

    shops: list[NearShop]
    last: NearPosition | None


def encode_message(message: ShopRefresh | ShopJobStep) -> str:
    """The body of a message of SHOPS."""
    return message.to_json()


def decode_message(body: str) -> ShopRefresh | ShopJobStep:
    """What ``encode_message`` wrote. Raises InvalidMessage."""
    fields = messages.read_object(body)
    if "shop_ids" in fields:
        return ShopRefresh(read(fields, "shop_ids", list_of(ID, 0, MAX_SHOPS_PER_MESSAGE)))
    step = ShopJobStep(
        read(fields, "job", one_of(_JOBS)),
        read(fields, "type_id", nullable(ID), default=None),
        read(fields, "build", text(0, _MAX_BUILD), default=""),
        read(fields, "after_id", integer(0, messages.MAX_ID), default=0),
    )
    if step.after_id and not step.build and step.job != EVERYTHING:
        raise InvalidMessage(
            "after_id is of a build without a name"
        )  # it would lack what is before
    return step
