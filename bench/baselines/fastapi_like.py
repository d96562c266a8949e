"""A like as a small FastAPI service makes it: the five-call script and its answer.

It has no session, rate limit, queue or log. ``BENCH_REDIS_URL`` is its Redis.
"""

import os
from pathlib import Path
from typing import Any

import redis.asyncio
from fastapi import FastAPI, Header

TTL_S = 86_400

app = FastAPI()
_client = redis.asyncio.Redis.from_url(os.environ["BENCH_REDIS_URL"], decode_responses=True)
_script = _client.register_script(Path(__file__).with_name("five_calls.lua").read_text())


@app.put("/posts/{post_id}/likes/me")
async def like_post(post_id: int, user: int = Header()) -> dict[str, Any]:
    keys = [f"like:post:{post_id}:{user}", f"likes:post:{post_id}"]
    return {"liked": True, "likes": int(await _script(keys, [TTL_S]))}
