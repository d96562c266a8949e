"""An app with articles of its own. It knows nothing of Plaza, and counts no likes."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import NamedTuple

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse


class Article(NamedTuple):
    """What the app stores of an article; its authors and readers are names."""

    author: str
    title: str
    text: str


ARTICLES = {
    "8f3a": Article("ann", "How bread rises", "Slowly."),
    "tea-2": Article("bob", "Tea, again", "Warm the pot."),
}
app = FastAPI()
footer: Callable[[str, str | None], str] = "".format  # of an article and a reader, empty


@app.get("/sign-in/{name}")
def sign_in(name: str) -> RedirectResponse:
    """Sign in as ``name``. A real app asks for more."""
    reply = RedirectResponse("/articles/8f3a", 303)
    reply.set_cookie("reader", name, httponly=True, samesite="lax")
    return reply


@app.get("/articles/{article_id}")
def show_article(article_id: str, request: Request) -> HTMLResponse:
    """Return the page of an article."""
    article = ARTICLES.get(article_id)
    if article is None:
        raise HTTPException(404)
    return HTMLResponse(
        f"<!doctype html><html lang=en><title>{escape(article.title)}</title>"
        '<meta name="viewport" content="width=device-width">'
        f"<h1>{escape(article.title)}</h1><p>by {escape(article.author)}<p>{escape(article.text)}"
        f"{footer(article_id, request.cookies.get('reader'))}"
    )
