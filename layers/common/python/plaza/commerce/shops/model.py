"""Shops, their types and places, pages of nearby shops, messages. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from plaza.infra.runtime.codec import Struct, list_codec, or_deleted, record_codec
from plaza.infra.runtime.errors import BadInput, Conflict, Forbidden, Gone, NotFound

MAX_LATITUDE = 85.05112878  # the limit of GEO sets, which use the web Mercator projection
MAX_LONGITUDE = 180.0
MAX_RADIUS_M = 50_000
MAX_NEARBY_SHOPS = 1_000  # on all pages together
MAX_SHOPS_PER_MESSAGE = 100
REMOVED_VERSION = 2**53 - 1  # newer than all versions: older reads cannot restore a removed row
FILTER: Literal["filter"] = "filter"
PLACES: Literal["places"] = "places"
EVERYTHING: Literal["everything"] = "everything"
MAX_BUILD = 64  # characters
MAX_MEMBERS = 50  # of a shop: all are on one page, and locked by each change of one
OWNER: Literal["owner"] = "owner"
STAFF: Literal["staff"] = "staff"
Role = Literal["owner", "staff"]


class ShopMissing(NotFound):
    """The shop does not exist."""


class ShopDeleted(Gone):
    """The shop was deleted."""


class TypeMissing(NotFound):
    """The shop type does not exist."""


class TypeUnknown(BadInput):
    """The type in a request to store a shop does not exist."""


class TypeInUse(Conflict):
    """The shop type has shops and cannot be deleted."""

    slug = "type-in-use"
    title = "Shop type in use"
    example = "Shop type 3 has shops. Move or delete them first."


class NotMember(Forbidden):
    """The caller does not act for the shop, or not in the role that the request requires."""


class MemberMissing(NotFound):
    """The user who would act for a shop does not exist."""


class LastOwner(Conflict):
    """The shop would be without an owner."""

    slug = "last-owner"
    title = "Last owner"
    example = "The shop has no other owner. Appoint one first."


class TooManyMembers(Conflict):
    """The shop has as many members as a shop can have."""

    slug = "too-many-members"
    title = "Too many members"
    example = "A shop has at most 50 members."


class Member(NamedTuple):
    """A user who acts for a shop; ``since_us``: microseconds since 1970."""

    user_id: int
    role: Role
    since_us: int


class ShopType(NamedTuple):
    """A shop type, such as ``food``; ``icon`` is a URL."""

    id: int
    name: str
    icon: str | None


class ShopTypeDraft(NamedTuple):
    """A shop type before it is stored. Types are listed by ascending ``sort``."""

    name: str
    icon: str | None = None
    sort: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopDraft:
    """A shop before it is stored. ``x`` (longitude) and ``y`` (latitude) in degrees: both or
    neither; without them no search finds the shop nearby. ``avg_price_cents`` is per person."""

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
    """A shop. ``created_us``, ``updated_us``: microseconds since 1970, by the clock of MySQL."""

    id: int
    created_us: int
    updated_us: int


class StoredShop(NamedTuple):
    """A shop, its version and its state in MySQL."""

    shop: Shop
    version: int
    deleted: bool


SHOP = or_deleted(record_codec("shop_pages", Shop))
TYPES = list_codec("shop_types", ShopType)


class Place(NamedTuple):
    """A point: longitude and latitude in degrees."""

    x: float
    y: float


class ShopPlace(NamedTuple):
    """The place of a shop at a version (None: it has no place, or was deleted). A shop without a
    version was removed from MySQL."""

    shop_id: int
    version: int | None
    place: Place | None
    type_id: int | None = None


class ShopDistance(NamedTuple):
    """A shop and its distance in tenths of a millimetre. Lists of nearby shops have this order."""

    distance: int
    shop_id: int

    @property
    def distance_m(self) -> float:
        """Return metres, to the decimetre: the precision of GEO sets."""
        return round(self.distance / 10_000, 1)


LIST_START = ShopDistance(-1, 0)  # the cursor before the first shop


class NearCursor(NamedTuple):
    """The end of a page of nearby shops: its last shop, and the number of shops listed so far."""

    distance: int
    shop_id: int
    listed: int

    @property
    def last_shop(self) -> ShopDistance:
        return ShopDistance(self.distance, self.shop_id)


class Area(NamedTuple):
    """The area of a search: ``radius_m`` around ``place``, for one shop type or (None) for all."""

    place: Place
    radius_m: int
    type_id: int | None

    def rounded(self, digits: int) -> Area:
        """Return the area with its place rounded to decimals of a degree."""
        place = Place(round(self.place.x, digits), round(self.place.y, digits))
        return self._replace(place=place)

    def to_text(self) -> str:
        """Return the text that cursors are signed with; equal for equal areas only."""
        return f"{self.place.x!r} {self.place.y!r} {self.radius_m} {self.type_id}"


def place_of(x: float | None, y: float | None) -> Place | None:
    """Return the place; None without coordinates, and for coordinates that GEO sets refuse."""
    if x is None or y is None or abs(x) > MAX_LONGITUDE or abs(y) > MAX_LATITUDE:
        return None
    return Place(x, y)


def shop_place_of(stored: StoredShop) -> ShopPlace:
    place = None if stored.deleted else place_of(stored.shop.x, stored.shop.y)
    return ShopPlace(stored.shop.id, stored.version, place, stored.shop.type_id)


class ShopChange(NamedTuple):
    """A changed row of ``shop``: its versions before and after, None where the row did not exist.
    Changes that bypass the API leave the version unchanged."""

    shop_id: int
    before: int | None
    after: int | None


class ShopRefresh(Struct, frozen=True):
    """A request to project shops from MySQL to Redis; without shops, their types."""

    shop_ids: list[int]


class ShopJobStep(Struct, frozen=True):
    """A step of a job on all shops: build the bloom filter, build the places, or refresh all
    projections. ``build``: its name in Redis, '' before it begins; ``after_id``: the last shop that
    was processed."""

    job: Literal["filter", "places", "everything"]
    build: str = ""
    after_id: int = 0


class NearShop(NamedTuple):
    """A shop and its distance in metres."""

    shop: Shop
    distance_m: float


class NearPage(NamedTuple):
    """A page of nearby shops, and its end (None: no page follows)."""

    shops: list[NearShop]
    last: NearCursor | None
