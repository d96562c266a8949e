"""``python -m bench.delay PORT TARGET MS``: a proxy that adds latency to each round trip.

Each direction adds half of it, without a limit of what is on its way.
"""

import asyncio
import sys

_CHUNK_BYTES = 1 << 18


async def _forward(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float
) -> None:
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def write() -> None:
        while True:
            due_s, chunk = await chunks.get()
            await asyncio.sleep(max(0.0, due_s - loop.time()))
            if not chunk:
                return
            writer.write(chunk)

    writing = asyncio.create_task(write())
    try:
        while chunk := await reader.read(_CHUNK_BYTES):
            chunks.put_nowait((loop.time() + delay_s, chunk))
    except OSError:
        pass
    chunks.put_nowait((0.0, b""))
    await writing
    writer.close()


async def _serve(port: int, target: int, latency_ms: float) -> None:
    delay_s = latency_ms / 2000

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", target)
        await asyncio.gather(
            _forward(reader, to_writer, delay_s), _forward(to_reader, writer, delay_s)
        )

    server = await asyncio.start_server(connect, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
