"""Routes of the template's API body."""

import json
from typing import Any

import pytest

from cli.paths import CommandError
from local.stack.routes import Route, read_body, read_cors, read_routes

ARN = "arn:aws:lambda:us-east-1:000000000000:function:likes"
SUB = "arn:${AWS::Partition}:apigateway:${AWS::Region}:lambda:path/2015-03-31/functions/${%s.Arn}/x"
VALUES = {
    "AWS::Partition": "aws",
    "AWS::Region": "us-east-1",
    "Likes.Arn": ARN,
    "Origins": "https://a.example,https://b.example",
}
URI = f"arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/{ARN}/x"


def template(paths: dict[str, Any], **more: Any) -> str:
    body = {"paths": paths, **more}
    api = {"Type": "AWS::ApiGatewayV2::Api", "Properties": {"Body": body}}
    return json.dumps({"Resources": {"Api": api, "Other": {"Type": "AWS::SQS::Queue"}}})


def operation() -> dict[str, Any]:
    return {
        "x-amazon-apigateway-integration": {
            "type": "aws_proxy",
            "payloadFormatVersion": "2.0",
            "uri": {"Fn::Sub": SUB % "Likes"},
        }
    }


def test_each_method_of_each_path_becomes_a_route() -> None:
    paths = {
        "/posts/{id}/likes/me": {"put": operation(), "delete": operation()},
        "/health": {"get": operation()},
        "$default": {"x-amazon-apigateway-any-method": operation()},
    }
    assert read_routes(read_body(template(paths), VALUES)) == [
        Route("PUT /posts/{id}/likes/me", URI, "2.0"),
        Route("DELETE /posts/{id}/likes/me", URI, "2.0"),
        Route("GET /health", URI, "2.0"),
        Route("$default", URI, "2.0"),
    ]


def test_cors_of_the_body_reaches_the_api() -> None:
    cors = {"allowOrigins": {"Ref": "Origins"}, "allowMethods": ["GET", "PUT"], "maxAge": 600}
    body = read_body(template({}, **{"x-amazon-apigateway-cors": cors}), VALUES)
    assert read_cors(body) == {
        "AllowOrigins": ["https://a.example", "https://b.example"],
        "AllowMethods": ["GET", "PUT"],
        "MaxAge": 600,
    }


def test_unknown_reference_is_reported() -> None:
    paths = {"/a": {"get": operation()}}
    known = {name: value for name, value in VALUES.items() if name != "Likes.Arn"}
    with pytest.raises(CommandError, match=r"Likes\.Arn"):
        read_body(template(paths), known)


def test_route_without_an_integration_is_reported() -> None:
    with pytest.raises(CommandError, match="GET /a"):
        read_routes(read_body(template({"/a": {"get": {}}}), VALUES))


def test_route_with_an_authorizer_is_reported() -> None:
    guarded = operation() | {"security": [{"Sessions": []}]}
    with pytest.raises(CommandError, match="GET /a of the template has an authorizer"):
        read_routes(read_body(template({"/a": {"get": guarded}}), VALUES))
