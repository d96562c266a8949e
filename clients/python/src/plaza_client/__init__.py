"""A client of Plaza: likes, follows, feeds, rankings and flash sales, counted exactly.

```
plaza = Plaza("https://api.example", token="sk_...")
like = plaza.act_as("my-app|ann").posts.like("12")
```
"""

from plaza_client import models, problems
from plaza_client.calls import KeyedOptions, Options, Reply, Retry, tag_of
from plaza_client.client import AsyncPlaza, Plaza
from plaza_client.errors import NetworkError, PlazaError, ProblemError, WebhookVerificationError
from plaza_client.lists import AsyncListed, Listed
from plaza_client.totals import Known, Totals, is_newer
from plaza_client.version import __version__
from plaza_client.webhooks import Webhook

__all__ = [
    "AsyncListed",
    "AsyncPlaza",
    "KeyedOptions",
    "Known",
    "Listed",
    "NetworkError",
    "Options",
    "Plaza",
    "PlazaError",
    "ProblemError",
    "Reply",
    "Retry",
    "Totals",
    "Webhook",
    "WebhookVerificationError",
    "__version__",
    "is_newer",
    "models",
    "problems",
    "tag_of",
]
