"""The cookbook: an app with people, sessions, recipes and likes of its own.

It knows nothing of Plaza. docs/guides/adopt.md copies it, and adopts Plaza.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Annotated, Any

from fastapi import Cookie, Depends, FastAPI, HTTPException, Response

SCHEMA = """
CREATE TABLE IF NOT EXISTS person (id INTEGER PRIMARY KEY, name TEXT, created_at TEXT);
CREATE TABLE IF NOT EXISTS session (token TEXT PRIMARY KEY, person_id INTEGER);
CREATE TABLE IF NOT EXISTS recipe (
  id INTEGER PRIMARY KEY, person_id INTEGER, title TEXT, text TEXT, created_at TEXT
);
CREATE TABLE IF NOT EXISTS recipe_like (
  person_id INTEGER, recipe_id INTEGER, created_at TEXT, PRIMARY KEY (person_id, recipe_id)
);
CREATE TABLE IF NOT EXISTS fan (
  person_id INTEGER, cook_id INTEGER, created_at TEXT, PRIMARY KEY (person_id, cook_id)
);
"""

app = FastAPI()


@contextmanager
def connect() -> Iterator[sqlite3.Connection]:
    """Open the database for one transaction."""
    with closing(sqlite3.connect("cookbook.db", timeout=10)) as connection:
        connection.executescript(SCHEMA)
        with connection:
            yield connection


def current_person(session: Annotated[str, Cookie()] = "") -> int:
    """Return the id of the person who is signed in."""
    with connect() as db:
        row = db.execute("SELECT person_id FROM session WHERE token = ?", (session,)).fetchone()
    if row is None:
        raise HTTPException(401)
    return int(row[0])


Person = Annotated[int, Depends(current_person)]


@app.post("/people")
def sign_up(name: str, response: Response) -> dict[str, int]:
    """Create a person, who is signed in then."""
    with connect() as db:
        cursor = db.execute(
            "INSERT INTO person (name, created_at) VALUES (?, CURRENT_TIMESTAMP)", (name,)
        )
        person_id = int(cursor.lastrowid or 0)
        db.execute("INSERT INTO session VALUES (?, ?)", (f"session-{person_id}", person_id))
    response.set_cookie("session", f"session-{person_id}", samesite="lax")
    return {"id": person_id}


@app.post("/recipes")
def publish(title: str, text: str, person: Person) -> dict[str, int]:
    """Create a recipe."""
    with connect() as db:
        cursor = db.execute(
            "INSERT INTO recipe (person_id, title, text, created_at)"
            " VALUES (?, ?, ?, CURRENT_TIMESTAMP)",
            (person, title, text),
        )
        return {"id": int(cursor.lastrowid or 0)}


@app.get("/recipes/{recipe}")
def show(recipe: int) -> dict[str, Any]:
    """Return a recipe with its likes, which are counted in the table."""
    with connect() as db:
        row = db.execute("SELECT title, text FROM recipe WHERE id = ?", (recipe,)).fetchone()
        [likes] = db.execute(
            "SELECT COUNT(*) FROM recipe_like WHERE recipe_id = ?", (recipe,)
        ).fetchone()
    if row is None:
        raise HTTPException(404)
    return {"title": row[0], "text": row[1], "likes": likes}
