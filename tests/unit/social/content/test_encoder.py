"""What the encoder sends, beside the schemas of the contract."""

from __future__ import annotations

import dataclasses
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from plaza.core.reactions import Target, reaction_lists
from plaza.core.reactions.kinds import kinds_of
from plaza.core.reactions.model import Count, ReactedTarget
from plaza.core.reactions.schemas import make_item_schema
from plaza.infra.http.requests import MAX_ID
from plaza.infra.http.schemas import Time
from plaza.infra.mysql.sql import from_us
from plaza.people.users import Card
from plaza.people.users.schemas import UserCard
from plaza.social.content import encoder
from plaza.social.content.model import MAX_CREATED_US, MAX_PREVIEW, ContentView, Text, cut_preview
from plaza.social.content.schemas import (
    Comment,
    Post,
    PostDetails,
    PostPreview,
    Review,
    ViewerState,
)
from plaza.social.recommendations.schemas import RankedPostResponse

# JSON has no text with a part of a surrogate pair, and neither have the stores.
names = st.text(max_size=20)
ids = st.integers(1, MAX_ID)
tokens = st.none() | st.from_regex(r"[0-9A-Za-z_-]{1,64}", fullmatch=True)
counts = st.builds(Count, st.integers(0, MAX_ID), st.booleans(), tokens)
cards = st.builds(Card, ids, names, st.none() | names)
times_us = st.integers(0, MAX_CREATED_US)
texts = st.builds(
    Text,
    type=st.sampled_from(["post", "comment", "review"]),
    author_id=ids,
    body=st.text(max_size=2 * MAX_PREVIEW),
    parent_id=ids,
    kind=st.sampled_from(["note", "blog"]),
    title=names,
    order_id=st.none() | ids,
    images=st.lists(names, max_size=9).map(tuple),
    score=st.integers(1, 5),
    id=ids,
    created_us=times_us,
    edited_us=st.none() | times_us,
    hidden=st.booleans(),
)
views = st.builds(
    ContentView,
    texts,
    st.none() | cards,
    st.fixed_dictionaries({kind.name: counts for kind in kinds_of("post")}),
    st.integers(0, MAX_ID),
    st.none() | st.integers(0, MAX_ID),
    st.booleans(),
)
actors = st.none() | ids


def of_type(view: ContentView, text_type: str) -> ContentView:
    return dataclasses.replace(view, text=dataclasses.replace(view.text, type=text_type))


def counted(view: ContentView, actor_id: int | None) -> dict[str, Any]:
    """Return the fields of a text's reactions."""
    likes, collects = view.counts["like"], view.counts["collect"]
    is_anonymous = actor_id is None
    return {
        "likes": likes.total,
        "likes_at": likes.at,
        "collects": collects.total,
        "collects_at": collects.at,
        "mine": None
        if is_anonymous
        else ViewerState(liked=likes.viewer_state, collected=collects.viewer_state),
        "reactions": {
            kind: {
                "total": count.total,
                "at": count.at,
                "mine": None if is_anonymous else count.viewer_state,
            }
            for kind, count in view.counts.items()
        },
        "exact": view.exact,
    }


@given(views, actors, st.none() | st.lists(cards, max_size=5), st.integers())
def test_posts_have_the_fields_of_their_schemas(
    view: ContentView, actor_id: int | None, likers: list[Card] | None, score: int
) -> None:
    view = of_type(view, "post")
    text = view.text
    post = Post.model_validate_json(encoder.encode_post(view, actor_id))
    assert post == Post.model_validate(
        {
            "id": str(text.id),
            "kind": text.kind,
            "title": text.title,
            "body": text.body,
            "images": list(text.images),
            "created_at": from_us(text.created_us),
            "edited_at": None if text.edited_us is None else from_us(text.edited_us),
            "hidden": text.hidden,
            "author": UserCard.of(view.author or Card.unknown(text.author_id)),
            **counted(view, actor_id),
            "comments": view.comments,
            "viewers": view.viewers,
        }
    )
    fields = dict(post)
    of_likers = None if likers is None else [UserCard.of(card) for card in likers]
    details = encoder.encode_post_details(view, actor_id, likers)
    assert PostDetails.model_validate_json(details) == PostDetails(**fields, likers=of_likers)
    del fields["body"]
    fields |= {
        "body_preview": cut_preview(text.body),
        "truncated": cut_preview(text.body) != text.body,
    }
    preview = PostPreview.model_validate_json(encoder.encode_preview(view, actor_id))
    assert preview == PostPreview(**fields)
    ranked = RankedPostResponse.model_validate_json(encoder.encode_ranked(view, actor_id, score))
    assert ranked == RankedPostResponse(**fields, score=score)


@given(views, actors)
def test_comments_and_reviews_have_the_fields_of_their_schemas(
    view: ContentView, actor_id: int | None
) -> None:
    text = view.text
    fields = {
        "id": str(text.id),
        "body": text.body,
        "created_at": from_us(text.created_us),
        "hidden": text.hidden,
        "author": UserCard.of(view.author or Card.unknown(text.author_id)),
        **counted(view, actor_id),
    }
    comment = encoder.encode_comment(of_type(view, "comment"), actor_id)
    assert Comment.model_validate_json(comment) == Comment.model_validate(
        fields | {"post_id": str(text.parent_id)}
    )
    review = encoder.encode_review(of_type(view, "review"), actor_id)
    assert Review.model_validate_json(review) == Review.model_validate(
        fields
        | {
            "shop_id": str(text.parent_id),
            "title": text.title,
            "verified": text.order_id is not None,
            "score": text.score,
            "images": list(text.images),
        }
    )


@given(views, ids, times_us)
def test_a_listed_reaction_has_the_fields_of_its_schema(
    view: ContentView, actor_id: int, at_us: int
) -> None:
    post = of_type(view, "post")
    reacted, post_id = ReactedTarget(Target("post", post.text.id), at_us), str(post.text.id)
    encoded_post = encoder.encode_reacted(post, actor_id)
    for encoded, has_post in ((encoded_post, True), (encoder.ABSENT, False)):
        text = reaction_lists.encode_item(reacted, post_id, [encoded])
        item: Any = make_item_schema().model_validate_json(text)
        assert (item.type, item.id, item.at) == ("post", post_id, from_us(at_us))
        assert (item.post is not None) is has_post


@given(times_us)
def test_times_are_those_of_the_schemas(at_us: int) -> None:
    expected = TypeAdapter(Time).dump_json(from_us(at_us)).decode()
    assert f'"{encoder.format_time(at_us)}"' == expected
