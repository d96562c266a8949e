"""Reactions of callers and lists of them, by kind, of likes and collects also by name; targets of
the app."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.core.reactions import COLLECT, KINDS, LIKE, Kind, Target, queries, react
from plaza.core.reactions.kinds import CONTENT_TYPES, KindName, kinds_of
from plaza.core.reactions.model import KindClosed, Outcome, ReactedTarget, Reactor, TargetDeleted
from plaza.core.targets import TargetHidden, external_targets
from plaza.core.targets.external_targets import Created, NumberTaken, OwnerFixed
from plaza.core.targets.target_ids import TargetId, TypeName, parse_id
from plaza.core.targets.types import EXTERNAL
from plaza.infra.http.requests import Id, read_id  # noqa: F401
from plaza.infra.http.resolver import PlazaResolver, find_caller, require_caller
from plaza.infra.http.responses import encode_page
from plaza.infra.http.routes import (
    BEARER,
    OPTIONAL,
    SERVER,
    WRITES,
    BodyOf,
    Compressed,
    Held,
    Responses,
    declare_arguments,
)
from plaza.infra.runtime.errors import BadInput, Conflict, Forbidden, Gone, NotFound
from plaza.infra.runtime.lazy_modules import LazyModule
from plaza.infra.runtime.observability import logger, metrics
from plaza.people.auth.caller_identity import identify

if TYPE_CHECKING:
    from plaza.core.reactions import reaction_lists, schemas
    from plaza.infra.http import cursors
    from plaza.infra.http import schemas as http
    from plaza.people.follows import follow_user
    from plaza.people.users import likers, owned_targets
    from plaza.people.users import schemas as user_schemas
    from plaza.people.users.owned_targets import OwnedTarget
else:  # a like needs no pydantic, and no lists
    cursors = LazyModule("plaza.infra.http.cursors")
    http, schemas = (
        LazyModule("plaza.infra.http.schemas"),
        LazyModule("plaza.core.reactions.schemas"),
    )
    follow_user = LazyModule("plaza.people.follows.follow_user")
    likers = LazyModule("plaza.people.users.likers")
    owned_targets = LazyModule("plaza.people.users.owned_targets")
    reaction_lists = LazyModule("plaza.core.reactions.reaction_lists")
    user_schemas = LazyModule("plaza.people.users.schemas")

app = PlazaResolver(identify, tag="reactions")

_PROVISIONAL = "Accepted; not counted yet. Redis is unavailable."
_LIKERS = Responses("A page of users.", NotFound, Gone, TargetHidden)
_REACTED = Responses("A page of targets.")


class _Named(NamedTuple):
    """The routes of a built-in kind: part of the path, verbs, fields and schema of the response,
    texts."""

    kind: Kind
    path: str
    verbs: tuple[str, str]
    fields: tuple[str, str]
    schema: str
    texts: tuple[str, str]


_NAMED = (
    _Named(
        LIKE,
        "likes",
        ("like", "unlike"),
        ("liked", "likes"),
        "LikeResponse",
        ("Like a {}.\n\nIdempotent: a like counts once.", "Unlike a {}.\n\nIdempotent."),
    ),
    _Named(
        COLLECT,
        "collects",
        ("collect", "uncollect"),
        ("collected", "collects"),
        "CollectResponse",
        (
            "Collect a {0}.\n\nSaves the {0} in the caller's private list. Idempotent: a collect"
            " counts once.",
            "Remove a {} from the caller's collects.\n\nIdempotent.",
        ),
    ),
)


def _add_named_routes(named: _Named, target_type: str) -> None:
    """Add ``PUT`` and ``DELETE /posts/{post_id}/likes/me``."""
    verb, path = named.verbs[0], f"/{target_type}s/<{target_type}_id>/{named.path}/me"
    errors = NotFound, Gone
    is_on = Responses({200: f"The caller {verb}s it.", 202: _PROVISIONAL}, *errors, TargetHidden)
    off = f"The caller does not {verb} it."
    is_off = Responses({200: off, 202: _PROVISIONAL}, *errors, example=2)
    for add, on, responses in ((app.put, True, is_on), (app.delete, False, is_off)):
        add(path, security=BEARER, middlewares=WRITES, responses=responses)(
            _make_function(named, target_type, on)
        )


def _make_function(named: _Named, target_type: str, on: bool) -> Callable[..., Any]:
    """Return a route's function, with the name, text and arguments that the contract shows."""
    name = f"{target_type}_id"

    def function(**ids: str) -> tuple[dict[str, Any], int]:
        target = Target(target_type, read_id(ids[name], target_type))
        outcome = react.react(named.kind, target, require_caller(app), on)
        state, total = named.fields
        return _answer(
            outcome, {state: outcome.on, total: outcome.total, f"{total}_at": outcome.at}
        )

    body = f"tuple[Annotated[dict[str, Any], BodyOf(schemas.{named.schema})], int]"
    function.__name__ = f"{named.verbs[0 if on else 1]}_{target_type}"
    function.__doc__ = named.texts[0 if on else 1].format(target_type)
    declare_arguments(function, {name: "Id"}, {}, body)
    return function


for _named in _NAMED:
    for _type in sorted(_named.kind.targets & CONTENT_TYPES):
        _add_named_routes(_named, _type)


@app.put(
    "/targets/<target_type>/<target_id>/reactions/<kind>/me",
    security=BEARER,
    middlewares=WRITES,
    responses=Responses(
        {200: "The caller reacts.", 202: _PROVISIONAL},
        Forbidden,  # what a follow raises, too
        NotFound,
        Gone,
        TargetHidden,
        Conflict,
        KindClosed,
        NumberTaken,
    ),
)
def set_reaction(
    target_type: TypeName, target_id: TargetId, kind: KindName
) -> tuple[Annotated[dict[str, Any], BodyOf(schemas.ReactionResponse)], int]:
    """React to a target.

    For each kind that the target takes. Idempotent: a reaction counts once.
    """
    return _react_by_name(target_type, target_id, kind, True)


@app.delete(
    "/targets/<target_type>/<target_id>/reactions/<kind>/me",
    security=BEARER,
    middlewares=WRITES,
    responses=Responses(
        {200: "The caller does not react.", 202: _PROVISIONAL}, NotFound, Gone, example=2
    ),
)
def remove_reaction(
    target_type: TypeName, target_id: TargetId, kind: KindName
) -> tuple[Annotated[dict[str, Any], BodyOf(schemas.ReactionResponse)], int]:
    """Take back a reaction.

    Idempotent.
    """
    return _react_by_name(target_type, target_id, kind, False)


@app.get(
    "/targets/<target_type>/<target_id>/reactions/<kind>/me",
    security=BEARER,
    responses=Responses("The total, and whether the caller reacts.", NotFound),
)
def get_reaction(
    target_type: TypeName, target_id: TargetId, kind: KindName
) -> Annotated[dict[str, Any], BodyOf(schemas.ReactionState)]:
    """Get the caller's reaction to a target.

    Returns the total of its kind, too. A target that does not exist has zeros.
    """
    pair = _find_kind(target_type, kind), Target(target_type, parse_id(target_type, target_id))
    [count], exact = queries.read_counts([pair], require_caller(app))
    return {"total": count.total, "at": count.at, "mine": count.viewer_state, "exact": exact}


@app.post(
    "/reactions/query",
    security=OPTIONAL,
    middlewares=[Compressed(True), Held(True)],
    responses=Responses("The totals."),
)
def query_reactions(
    request: schemas.ReactionQueryRequest,
) -> Annotated[dict[str, Any], BodyOf(schemas.ReactionQueryResponse)]:
    """Query the totals of up to 100 targets.

    Returns each kind of reaction and the caller's state of each target. A target that does not
    exist has zeros.
    """
    actor_id = find_caller(app)
    targets = [Target(*ref.to_target()) for ref in request.targets]
    pairs = [(kind, target) for target in targets for kind in kinds_of(target.type)]
    counts, exact = queries.read_counts(pairs, actor_id)
    items: list[dict[str, Any]] = [
        {"type": ref.type, "id": ref.id, "mine": None if actor_id is None else {}, "reactions": {}}
        for ref in request.targets
    ]
    next_counts = iter(counts)  # in the order of ``pairs``
    for item in items:
        for kind in kinds_of(item["type"]):
            count = next(next_counts)
            mine = None if actor_id is None else count.viewer_state
            item["reactions"][kind.name] = {"total": count.total, "at": count.at, "mine": mine}
        for named in _NAMED:
            reaction, (state, total) = item["reactions"][named.kind.name], named.fields
            item |= {total: reaction["total"], f"{total}_at": reaction["at"]}
            if actor_id is not None:
                item["mine"][state] = reaction["mine"]
    return {"items": items, "exact": exact}


def _add_likers_route(target_type: str) -> None:
    """Add ``GET /posts/{post_id}/likers``."""
    name = f"{target_type}_id"

    def function(
        limit: int = 20, cursor: str | None = None, order: str = "earliest", **ids: str
    ) -> Any:
        return _likers(
            LIKE, Target(target_type, read_id(ids[name], target_type)), order, limit, cursor
        )

    function.__name__ = f"list_{target_type}_likers"
    function.__doc__ = f"""List the users who like a {target_type}.

    Earliest like first, unless `order` says otherwise. A new like appears after a second or two.
    """
    declare_arguments(
        function,
        {name: "Id"},
        {
            "limit": ("http.Limit", 20),
            "cursor": ("http.Cursor", None),
            "order": ("schemas.LikeOrder", "earliest"),
        },
        "http.Page[user_schemas.Liker]",
    )
    path = f"/{target_type}s/<{name}>/likers"
    app.get(path, security=OPTIONAL, responses=_LIKERS)(function)


for _type in sorted(LIKE.targets & CONTENT_TYPES):
    _add_likers_route(_type)


@app.get(
    "/targets/<target_type>/<target_id>/reactions/<kind>",
    security=OPTIONAL,
    responses=_LIKERS,
)
def list_reactions(
    target_type: TypeName,
    target_id: TargetId,
    kind: KindName,
    limit: http.Limit = 20,
    cursor: http.Cursor = None,
    order: schemas.LikeOrder = "earliest",
) -> http.Page[user_schemas.Liker]:
    """List the users who reacted to a target.

    For kinds whose actors are public; others are not found. Earliest reaction first, unless `order`
    says otherwise. A new reaction appears after a second or two.
    """
    declared = KINDS.get(kind)
    if declared is None or not declared.is_public or target_type not in declared.targets:
        raise NotFound(f"A {target_type} has no public list of {kind}.")
    target = Target(target_type, parse_id(target_type, target_id))
    return _likers(declared, target, order, limit, cursor)


@app.get("/users/me/likes", security=BEARER, responses=_REACTED)
def list_my_likes(
    limit: http.Limit = 20, cursor: http.Cursor = None, expand: schemas.Expand = None
) -> Annotated[str, BodyOf(http.Page[schemas.make_item_schema()])]:
    """List the targets that the caller likes.

    Latest like first. A new like appears after a second or two. With `expand` each item has
    a preview of its post, its comment or its review.
    """
    return _my_reactions(LIKE, limit, cursor, expand)


@app.get("/users/me/collects", security=BEARER, responses=_REACTED)
def list_my_collects(
    limit: http.Limit = 20, cursor: http.Cursor = None, expand: schemas.Expand = None
) -> Annotated[str, BodyOf(http.Page[schemas.make_item_schema()])]:
    """List the targets that the caller collects.

    Latest collect first. A new collect appears after a second or two. With `expand` each item has
    a preview of its post, its comment or its review.
    """
    return _my_reactions(COLLECT, limit, cursor, expand)


@app.get(
    "/users/me/reactions/<kind>",
    security=BEARER,
    responses=Responses("A page of targets.", NotFound),
)
def list_my_reactions(
    kind: KindName,
    limit: http.Limit = 20,
    cursor: http.Cursor = None,
    expand: schemas.Expand = None,
) -> Annotated[str, BodyOf(http.Page[schemas.make_item_schema()])]:
    """List the targets to which the caller reacted.

    Latest reaction first, of one kind. A new one appears after a second or two. With `expand` each
    item has a preview of its post, its comment or its review.
    """
    declared = KINDS.get(kind)
    if declared is None or "user" in declared.targets:
        raise NotFound(f"There is no list of {kind}.")
    return _my_reactions(declared, limit, cursor, expand)


@app.put(
    "/targets/<target_type>/<target_id>",
    security=SERVER,
    middlewares=WRITES,
    responses=Responses("The target is live.", NotFound, Gone, OwnerFixed, NumberTaken),
)
def set_target(
    target_type: TypeName, target_id: TargetId, request: schemas.TargetRequest
) -> schemas.CreatedTarget:
    """Create a target of the app.

    Of a type that the deployment declares. Idempotent: a repeat replaces the URL, unless it has
    none. The owner never changes. For servers.
    """
    _find_external(target_type, target_id)
    declared = owned_targets.OwnedTarget(target_type, target_id, request.owner, request.url)
    [result] = _create_targets([declared])
    match result:
        case Created.DELETED:
            raise TargetDeleted(f"{target_type.capitalize()} {target_id} was deleted.")
        case Created.OWNER_FIXED:
            raise OwnerFixed(f"{target_type.capitalize()} {target_id} has another owner, or none.")
        case Created.NUMBER_TAKEN:
            raise NumberTaken(f"{target_id} has the number of another {target_type}.")
        case Created.UNKNOWN_OWNER:
            raise BadInput("owner", "names no user", code="unknown-id")
    return schemas.CreatedTarget(type=target_type, id=target_id, result="live")


@app.delete(
    "/targets/<target_type>/<target_id>",
    security=SERVER,
    middlewares=WRITES,
    responses=Responses({204: "Deleted."}, NotFound, Gone),
)
def delete_target(target_type: TypeName, target_id: TargetId) -> tuple[None, int]:
    """Delete a target of the app.

    It takes no more reactions, keeps those that it has, and is not made again. For servers.
    """
    target = _find_external(target_type, target_id)
    react.require_live(target, external_targets.delete(target, target_id))
    return None, 204


@app.post(
    "/targets",
    security=SERVER,
    middlewares=WRITES,
    responses=Responses("What became of each."),
)
def create_targets(request: schemas.TargetsRequest) -> schemas.CreatedTargets:
    """Create up to 100 targets of the app.

    Idempotent: a repeat replaces their URLs. Each has a result of its own. For servers.
    """
    declared = [owned_targets.OwnedTarget(t.type, t.id, t.owner, t.url) for t in request.targets]
    results = _create_targets(declared)
    return schemas.CreatedTargets(
        items=[
            schemas.CreatedTarget(type=of.type, id=of.external_id, result=result.value)
            for of, result in zip(declared, results, strict=True)
        ]
    )


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request about reactions."""
    return app.resolve(event, context)


def _find_kind(target_type: str, name: str) -> Kind:
    """Return the kind ``name`` of targets of a type. Raises NotFound."""
    kind = KINDS.get(name)
    if kind is None or target_type not in kind.targets:
        raise NotFound(f"A {target_type} takes no {name}.")
    return kind


def _find_external(target_type: str, target_id: str) -> Target:
    """Return the target with this id, of a type of the app. Raises NotFound."""
    if target_type not in EXTERNAL:
        raise NotFound(f"{target_type!r} is not a type of the app.")
    return Target(target_type, parse_id(target_type, target_id))


def _create_targets(declared: Sequence[OwnedTarget]) -> list[Created]:
    """Create targets for a server, for ten tokens each; return what became of each."""
    app.charge(external_targets.TOKENS_PER_CREATION * len(declared) - 1)
    return owned_targets.create_all(declared)


def _likers(
    kind: Kind, target: Target, order: str, limit: int, cursor: str | None
) -> http.Page[user_schemas.Liker]:
    actor_id = find_caller(app)
    after = Reactor(*cursors.unpack_cursor(cursor, (int, int))) if cursor else None
    reaction_lists.require_visible(target, actor_id)
    page, last = likers.list_likers(kind, target, after, order == "latest", limit, actor_id)
    following = cursors.pack_cursor(*last) if last else None
    return http.Page(items=[user_schemas.Liker.of(r) for r in page], next=following)


def _my_reactions(kind: Kind, limit: int, cursor: str | None, expand: str | None) -> str:
    actor_id = require_caller(app)
    after = None
    if cursor:
        version_us, target_type, target_id = cursors.unpack_cursor(cursor, (int, str, int))
        if target_type not in kind.targets:
            raise cursors.BadCursor
        after = ReactedTarget(Target(target_type, target_id), version_us)
    types = None if expand == "target" else [expand] if expand else []
    page, last = reaction_lists.list_reacted(kind, actor_id, after, limit, types)
    return encode_page(page, (last.version_us, *last.target) if last else None)


def _react_by_name(
    target_type: str, target_id: str, name: str, on: bool
) -> tuple[dict[str, Any], int]:
    kind, actor_id = _find_kind(target_type, name), require_caller(app)
    target = Target(target_type, parse_id(target_type, target_id))
    if on and kind.hold:
        outcome = follow_user.follow(target.id, actor_id)
    elif target_type in EXTERNAL:
        outcome = react.react(
            kind, target, actor_id, on, external_id=target_id, charge=_charge_creation
        )
    else:
        outcome = react.react(kind, target, actor_id, on)
    return _answer(outcome, {"on": outcome.on, "total": outcome.total, "at": outcome.at})


def _charge_creation() -> None:
    app.charge(external_targets.TOKENS_PER_CREATION - 1)  # the request took one


def _answer(outcome: Outcome, fields: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """Return the body of a response as a dict, and its status."""
    fields |= {"changed": outcome.changed, "exact": outcome.exact}
    return fields, 200 if outcome.exact else 202
