"""A server that answers SendMessage as SQS does: ``python -m bench.fake_sqs PORT``.

It is a process of its own, so that a client's CPU can be measured. It stores nothing, and says of
each queue that it is empty.
"""

import asyncio
import hashlib
import json
import sys

MESSAGE_ID = "00000000-0000-4000-8000-000000000000"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0])
            request = json.loads(await reader.readexactly(length))
            digest = hashlib.md5(request.get("MessageBody", "").encode()).hexdigest()
            answered = {"MD5OfMessageBody": digest, "MessageId": MESSAGE_ID, "Attributes": {}}
            body = json.dumps(answered).encode()
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\n"
                b"x-amzn-RequestId: %s\r\nContent-Length: %d\r\n\r\n%s"
                % (MESSAGE_ID.encode(), len(body), body)
            )
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def serve(port: int) -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
