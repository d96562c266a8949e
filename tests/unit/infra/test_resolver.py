"""What PlazaResolver inherits from Powertools: routers, middlewares, exception handlers."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import (
    APIGatewayHttpResolver,
    ApiGatewayResolver,
    Router,
)
from aws_lambda_powertools.event_handler.middlewares import NextMiddleware
from aws_lambda_powertools.event_handler.openapi.models import HTTPBearer
from aws_lambda_powertools.event_handler.openapi.params import Header, Query

from local.stack.functions import CONTEXT, load_open_function
from plaza.core.switches.model import Switch
from plaza.infra.http.callers import Caller
from plaza.infra.http.limits import Bucket
from plaza.infra.http.requests import ID_PATTERN, Id
from plaza.infra.http.resolver import PlazaResolver, require_caller
from plaza.infra.http.responses import PROBLEM, SECURITY_HEADERS
from plaza.infra.http.routes import ADMIN, BEARER, OPTIONAL, WRITES, BodyOf, Responses, StoppedBy
from plaza.infra.http.schemas import FieldProblem
from plaza.infra.redis import redis
from plaza.infra.runtime import switch_state
from plaza.infra.runtime.errors import Forbidden, Gone, SwitchedOff
from plaza.infra.runtime.switch_state import ANY_WRITE

pytestmark = pytest.mark.usefixtures("configured")


def event(key: str, **parameters: str) -> dict[str, Any]:
    method, _, path = key.partition(" ")
    path = path.format(**parameters)
    return {
        "version": "2.0",
        "routeKey": key,
        "rawPath": path,
        "headers": {"x-thing": "a"},
        "pathParameters": parameters,
        "requestContext": {
            "http": {"method": method, "path": path, "sourceIp": "203.0.113.7"},
            "requestId": "JKJaXmPLvHcESHA=",
            "stage": "$default",
        },
        "isBase64Encoded": False,
    }


def make_app(caller: Caller | None = None) -> PlazaResolver:
    return PlazaResolver(lambda *_: caller or Caller(9))


def ask(app: PlazaResolver, key: str, **parameters: str) -> tuple[int, Any]:
    response = app.resolve(event(key, **parameters), CONTEXT)
    return response["statusCode"], json.loads(response["body"])


def test_a_router_registers_its_routes() -> None:
    app, router = make_app(), Router()  # type: ignore[no-untyped-call]

    @router.put("/things/<thing_id>", security=BEARER, middlewares=[StoppedBy(ANY_WRITE)])
    def put_thing(thing_id: Id) -> dict[str, Any]:
        return {"id": thing_id, "sent": router.current_event.headers["x-thing"]}

    app.include_router(router)
    assert ask(app, "PUT /things/{thing_id}", thing_id="7") == (200, {"id": "7", "sent": "a"})
    assert app.endpoints["PUT /things/{thing_id}"].switch is ANY_WRITE
    assert app.lambda_context.function_name == CONTEXT.function_name


def test_a_router_without_a_security_is_refused() -> None:
    router = Router()  # type: ignore[no-untyped-call]
    router.get("/things")(dict)
    with pytest.raises(TypeError, match="GET /things declares no security"):
        make_app().include_router(router)


def test_middlewares_run_around_a_route_whose_caller_is_admitted() -> None:
    app, calls = make_app(), []

    def count(app: ApiGatewayResolver, next_middleware: NextMiddleware) -> Response[Any]:
        calls.append(app.current_event.raw_path)  # type: ignore[attr-defined]
        response = next_middleware(app)
        response.headers["X-Counted"] = "1"
        return response

    def stop(_: ApiGatewayResolver, __: NextMiddleware) -> Response[Any]:
        return Response(418, "text/plain", "stopped")

    @app.get("/things/<thing_id>", security=OPTIONAL)
    def get_thing(thing_id: Id) -> tuple[dict[str, Any], int]:
        return {"id": thing_id}, 202

    @app.get("/stopped", security=OPTIONAL, middlewares=[stop])
    def get_stopped() -> dict[str, Any]:
        raise NotImplementedError

    app.use([count])
    response = app.resolve(event("GET /things/{thing_id}", thing_id="7"), CONTEXT)
    assert (response["statusCode"], json.loads(response["body"])) == (202, {"id": "7"})
    assert response["headers"]["x-counted"] == "1"
    assert app.resolve(event("GET /stopped"), CONTEXT)["statusCode"] == 418
    assert ask(app, "GET /things/{thing_id}", thing_id="x")[0] == 404
    assert calls == ["/things/7", "/stopped"]
    assert app.context == {}


@pytest.mark.parametrize("sent", [{}, {"x-visitor-id": "a"}, {"idempotency-key": "b"}])
def test_a_request_without_parameters_gets_the_defaults(sent: dict[str, str]) -> None:
    app = make_app()

    @app.get("/things/<thing_id>", security=OPTIONAL)
    def get_thing(
        thing_id: Id,
        limit: Annotated[int, Query(ge=2)] = 20,
        key: Annotated[str | None, Header(alias="Idempotency-Key")] = None,
    ) -> dict[str, Any]:
        return {"id": thing_id, "limit": limit, "key": key}

    def ask_with(query: dict[str, str] | None, thing_id: str = "7") -> tuple[int, Any]:
        request = event("GET /things/{thing_id}", thing_id=thing_id)
        request |= {"headers": sent, "queryStringParameters": query}
        response = app.resolve(request, CONTEXT)
        return response["statusCode"], json.loads(response["body"])

    key = sent.get("idempotency-key")
    assert ask_with(None) == (200, {"id": "7", "limit": 20, "key": key})
    assert ask_with({"limit": "3"}) == (200, {"id": "7", "limit": 3, "key": key})
    assert [ask_with(query)[0] for query in ({"limit": "1"}, {"other": "3"})] == [400, 400]
    assert ask_with(None, "x")[0] == 404


REFUSED = '"default";r=0;t=7'


@pytest.mark.parametrize(("reply", "status"), [(-1_000_000, 200), (1_500_000, 429)])
def test_a_route_charges_for_its_cost(
    monkeypatch: pytest.MonkeyPatch, reply: int, status: int
) -> None:
    sent: list[Any] = []

    def run(*call: Any) -> int:
        sent.append(call)
        return reply

    monkeypatch.setattr(redis, "run", run)
    app = make_app(Caller(9, bucket=Bucket("reads", "9", per_s=20, burst=100)))

    @app.get("/wide", security=OPTIONAL)
    def get_wide() -> dict[str, Any]:
        app.charge(10)
        return {}

    response = app.resolve(event("GET /wide"), CONTEXT)
    assert response["statusCode"] == status
    assert response["headers"].get("retry-after") == ("2" if status == 429 else None)
    assert response["headers"]["ratelimit"] == ('"default";r=80;t=1' if status == 200 else REFUSED)
    [(_, _, args)] = sent
    assert args == (20, 100, 10)


def test_a_handler_of_an_exception_answers_instead_of_the_problem() -> None:
    app = make_app(Caller())

    @app.exception_handler(LookupError)  # type: ignore[untyped-decorator]
    def answer(error: LookupError) -> Response[str]:
        return Response(409, "text/plain", f"missing: {error.args[0]}")

    @app.get("/key", security=OPTIONAL)
    def get_key() -> dict[str, Any]:
        raise KeyError("a")

    @app.get("/own", security=OPTIONAL)
    def get_own() -> dict[str, Any]:
        return {"caller": require_caller(app)}

    response = app.resolve(event("GET /key"), CONTEXT)
    assert (response["statusCode"], response["body"]) == (409, "missing: a")
    assert response["headers"]["content-type"] == "text/plain"
    assert ask(app, "GET /own")[0] == 401


def test_a_switch_is_a_middleware_of_any_resolver(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def require(switch: Switch, parameters: Any) -> None:
        asked.append((switch, parameters))
        raise SwitchedOff("Plaza is in read-only mode.")

    monkeypatch.setattr(switch_state, "require", require)
    app = APIGatewayHttpResolver()
    app.get("/things/<thing_id>", middlewares=[StoppedBy(ANY_WRITE)])(lambda thing_id: {})
    with pytest.raises(SwitchedOff):
        app.resolve(event("GET /things/{thing_id}", thing_id="7"), CONTEXT)  # type: ignore[arg-type]
    assert asked == [(ANY_WRITE, {"thing_id": "7"})]


def test_the_schema_is_that_of_powertools() -> None:
    app = make_app(Caller(9, "admin"))

    @app.get(
        "/things/<thing_id>",
        security=OPTIONAL,
        middlewares=WRITES,
        responses=Responses({200: "A thing.", 202: "A later thing."}, Gone, Forbidden, example=1),
    )
    def get_thing(thing_id: Id) -> tuple[Annotated[dict[str, Any], BodyOf(FieldProblem)], int]:
        return {"id": thing_id}, 200

    @app.delete("/things/<thing_id>", security=ADMIN, responses=Responses({204: "Deleted."}))
    def delete_thing(thing_id: Id) -> tuple[None, int]:
        return None, 204

    assert app.resolve(event("DELETE /things/{thing_id}", thing_id="7"), CONTEXT)["body"] == ""
    schema = json.loads(app.get_openapi_json_schema(security_schemes={"bearer": HTTPBearer()}))
    path = schema["paths"]["/things/{thing_id}"]
    assert {"204", "401", "403", "429", "500", "503"} == set(path["delete"]["responses"]) - {"422"}
    operation = path["get"]
    assert operation["responses"]["200"]["description"] == "A thing."
    for number, status in enumerate(("200", "202"), 1):
        [body] = operation["responses"][status]["content"].values()
        assert body["schema"]["$ref"].endswith("/FieldProblem")
        assert body["x-example"] == number
    problems = {
        status: set(response["content"][PROBLEM]["examples"])
        for status, response in operation["responses"].items()
        if PROBLEM in response.get("content", {})
    }
    assert problems == {
        "401": {"unauthenticated"}, "403": {"forbidden"}, "410": {"gone"},
        "429": {"too-many-requests"}, "500": {"internal"}, "503": {"switched-off", "unavailable"},
    }  # fmt: skip
    [parameter] = operation["parameters"]
    assert (parameter["name"], parameter["in"]) == ("thing_id", "path")
    assert parameter["schema"]["pattern"] == ID_PATTERN


# ---------------------------------------------------------------- headers of all responses


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    ("outcome", "status"), [("found", 200), ("gone", 410), ("broken", 500), ("unrouted", 404)]
)
def test_a_browser_keeps_to_tls_and_takes_each_response_for_what_it_is(
    outcome: str, status: int, method: str
) -> None:
    app = make_app()

    @app.get("/found", security=OPTIONAL, responses=Responses("A thing."))
    def get_thing() -> dict[str, str]:
        return {"name": "found"}

    @app.get("/gone", security=OPTIONAL, responses=Responses("A thing.", Gone))
    def get_gone() -> dict[str, str]:
        raise Gone("It is gone.")

    @app.get("/broken", security=OPTIONAL, responses=Responses("A thing."))
    def get_broken() -> dict[str, str]:
        raise RuntimeError

    key = f"{method} /{outcome}"
    sent = event(key) | ({"routeKey": "$default"} if outcome == "unrouted" else {})
    response = app.resolve(sent, CONTEXT)
    assert response["statusCode"] == status
    assert SECURITY_HEADERS.items() <= response["headers"].items()


@pytest.mark.parametrize("path", ["/health", "/openapi.json"])
def test_constant_responses_have_these_headers_too(path: str) -> None:
    response = load_open_function("api/system").handler(event(f"GET {path}"), CONTEXT)
    assert SECURITY_HEADERS.items() <= response["headers"].items()
