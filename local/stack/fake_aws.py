"""A server that answers as SQS and Secrets Manager do: ``python -m local.stack.fake_aws PORT``.

It is a process of its own, so that a client's CPU can be measured. It stores nothing: each queue is
empty, and the secret ``USER:PASSWORD`` is that login; any other name is a key.
"""

import asyncio
import hashlib
import json
import sys
from typing import Any

MESSAGE_ID = "00000000-0000-4000-8000-000000000000"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0])
            request = json.loads(await reader.readexactly(length))
            is_secret = b"\r\nx-amz-target: secretsmanager.getsecretvalue\r\n" in head
            body = json.dumps((find_secret if is_secret else accept)(request)).encode()
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.%d\r\n"
                b"x-amzn-RequestId: %s\r\nContent-Length: %d\r\n\r\n%s"
                % (is_secret, MESSAGE_ID.encode(), len(body), body)
            )
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def accept(request: dict[str, Any]) -> dict[str, Any]:
    """Return the reply to a call of SQS."""
    body = request.get("MessageBody", "").encode()
    digest = hashlib.md5(body, usedforsecurity=False).hexdigest()
    return {"MD5OfMessageBody": digest, "MessageId": MESSAGE_ID, "Attributes": {}}


def find_secret(request: dict[str, Any]) -> dict[str, Any]:
    """Return the reply to GetSecretValue."""
    username, is_login, password = request["SecretId"].partition(":")
    text = json.dumps({"username": username, "password": password}) if is_login else username
    return {"ARN": request["SecretId"], "SecretString": text, "VersionStages": ["AWSCURRENT"]}


async def serve(port: int) -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
