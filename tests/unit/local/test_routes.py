"""What the template's API body becomes."""

import json
from typing import Any

import pytest

from local.paths import LocalError
from local.routes import create_routes, read_body, read_cors

ARN = "arn:aws:lambda:us-east-1:000000000000:function:likes"
SUB = "arn:${AWS::Partition}:apigateway:${AWS::Region}:lambda:path/2015-03-31/functions/${%s.Arn}/x"
VALUES = {
    "AWS::Partition": "aws",
    "AWS::Region": "us-east-1",
    "Likes.Arn": ARN,
    "Doorman.Arn": ARN + "-doorman",
    "Origins": "https://a.example,https://b.example",
}
URI = f"arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/{ARN}/x"


def template(paths: dict[str, Any], **more: Any) -> str:
    body = {
        "paths": paths,
        "components": {
            "securitySchemes": {
                "Sessions": {
                    "type": "apiKey",
                    "x-amazon-apigateway-authorizer": {
                        "type": "request",
                        "authorizerUri": {"Fn::Sub": SUB % "Doorman"},
                        "authorizerPayloadFormatVersion": "2.0",
                        "enableSimpleResponses": True,
                        "authorizerResultTtlInSeconds": 0,
                    },
                }
            }
        },
        **more,
    }
    api = {"Type": "AWS::ApiGatewayV2::Api", "Properties": {"Body": body}}
    return json.dumps({"Resources": {"Api": api, "Other": {"Type": "AWS::SQS::Queue"}}})


def operation(*, guarded: bool = True) -> dict[str, Any]:
    found: dict[str, Any] = {
        "x-amazon-apigateway-integration": {
            "type": "aws_proxy",
            "payloadFormatVersion": "2.0",
            "uri": {"Fn::Sub": SUB % "Likes"},
        }
    }
    return found | ({"security": [{"Sessions": []}]} if guarded else {})


class FakeGateway:
    """Remembers what is created."""

    def __init__(self) -> None:
        self.authorizers: list[dict[str, Any]] = []
        self.integrations: list[dict[str, Any]] = []
        self.routes: list[dict[str, Any]] = []
        self.cors: dict[str, Any] | None = None

    def update_api(self, **given: Any) -> None:
        self.cors = given["CorsConfiguration"]

    def create_authorizer(self, **given: Any) -> dict[str, str]:
        self.authorizers.append(given)
        return {"AuthorizerId": f"authorizer{len(self.authorizers)}"}

    def create_integration(self, **given: Any) -> dict[str, str]:
        self.integrations.append(given)
        return {"IntegrationId": f"integration{len(self.integrations)}"}

    def create_route(self, **given: Any) -> None:
        self.routes.append(given)


def test_each_method_of_each_path_becomes_a_route() -> None:
    paths = {
        "/posts/{id}/likes/me": {"put": operation(), "delete": operation()},
        "/health": {"get": operation(guarded=False)},
        "$default": {"x-amazon-apigateway-any-method": operation(guarded=False)},
    }
    gateway = FakeGateway()

    assert create_routes(gateway, "api1", read_body(template(paths), VALUES)) == 4

    assert [route["RouteKey"] for route in gateway.routes] == [
        "PUT /posts/{id}/likes/me",
        "DELETE /posts/{id}/likes/me",
        "GET /health",
        "$default",
    ]


def test_routes_of_one_function_share_its_integration() -> None:
    paths = {"/a": {"get": operation(), "put": operation()}}
    gateway = FakeGateway()
    create_routes(gateway, "api1", read_body(template(paths), VALUES))
    assert [made["IntegrationUri"] for made in gateway.integrations] == [URI]
    assert {route["Target"] for route in gateway.routes} == {"integrations/integration1"}


def test_only_a_guarded_route_asks_the_authorizer() -> None:
    paths = {"/a": {"get": operation(), "put": operation(guarded=False)}}
    gateway = FakeGateway()
    create_routes(gateway, "api1", read_body(template(paths), VALUES))
    guarded, open_ = gateway.routes
    assert guarded["AuthorizationType"] == "CUSTOM"
    assert guarded["AuthorizerId"] == "authorizer1"
    assert "AuthorizerId" not in open_


def test_an_authorizer_without_identity_sources_is_asked_every_time() -> None:
    gateway = FakeGateway()
    create_routes(gateway, "api1", read_body(template({}), VALUES))
    (made,) = gateway.authorizers
    assert made["IdentitySource"] == []
    assert made["AuthorizerResultTtlInSeconds"] == 0
    assert made["EnableSimpleResponses"] is True


def test_cors_of_the_body_reaches_the_api() -> None:
    cors = {"allowOrigins": {"Ref": "Origins"}, "allowMethods": ["GET", "PUT"], "maxAge": 600}
    body = read_body(template({}, **{"x-amazon-apigateway-cors": cors}), VALUES)
    assert read_cors(body) == {
        "AllowOrigins": ["https://a.example", "https://b.example"],
        "AllowMethods": ["GET", "PUT"],
        "MaxAge": 600,
    }


def test_a_name_the_stack_has_not_is_told() -> None:
    paths = {"/a": {"get": operation()}}
    known = {name: value for name, value in VALUES.items() if name != "Likes.Arn"}
    with pytest.raises(LocalError, match=r"Likes\.Arn"):
        read_body(template(paths), known)


def test_a_route_that_leads_nowhere_is_told() -> None:
    with pytest.raises(LocalError, match="GET /a"):
        create_routes(FakeGateway(), "api1", read_body(template({"/a": {"get": {}}}), VALUES))
