"""The client of Redis, and what is sent along with commands.

``from plaza.infra.redis import redis`` gives the client: ``redis.run(SCRIPT, keys)``. The
room itself has no names, and in it ``import redis`` is the library.
"""
