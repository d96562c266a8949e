"""The apps of docs/guides/server-rendered.md, and a browser that presses their button."""

from __future__ import annotations

import functools
import importlib
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from urllib.parse import urljoin

import httpx
import pytest

from cli.paths import ROOT
from plaza_client import AsyncPlaza, Plaza, Retry

GUIDE = ROOT / "docs" / "guides" / "server-rendered.md"
APPS = ("fastapi", "django")
USER = "1"  # of both apps
_ONCE = Retry(attempts=1)


class Button(NamedTuple):
    """What a page shows, and where its form is sent."""

    status: int
    text: str
    pressed: bool
    action: str
    fields: dict[str, str]


class AppBrowser:
    """A user of an app, without JavaScript."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def open(self, post_id: int | str) -> Button:
        """Return the button of a post's page."""
        return _read_button(self.client.get(f"/posts/{post_id}/", follow=True))

    def press(self, button: Button) -> Button:
        """Send the form, follow the redirect, and return the button of the next page."""
        return _read_button(self.client.post(button.action, button.fields, follow=True))


def _read_button(response: Any) -> Button:
    """Return the button of a page; of a page without one, its text."""
    page = response.content.decode()
    button = re.search(r'<button aria-pressed="(\w+)">(.*?)</button>', page, re.DOTALL)
    form = re.search(r'action="([^"]*)"', page)
    if button is None or form is None:
        return Button(response.status_code, page, False, "", {})
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="(\w+)"', page))
    text = " ".join(button[2].split())
    action = urljoin(_path_of(response), form[1])
    return Button(response.status_code, text, button[1] == "true", action, fields)


def _path_of(response: Any) -> str:
    if isinstance(response, httpx.Response):
        return response.url.path
    return str(response.request["PATH_INFO"])


@functools.cache
def load_app(name: str) -> ModuleType:
    """Import an app as the guide prints it, for Plaza at a URL that a test replaces."""
    directory = Path(tempfile.mkdtemp(prefix="plaza-guide-"))
    module = f"{name}_app"
    [code] = re.findall(
        rf"^```py\n(# {module}\.py\n.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL
    )
    (directory / f"{module}.py").write_text(code)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLAZA_URL", "http://127.0.0.1:1")
        patch.setenv("PLAZA_KEY", "sk_1_none")
        patch.syspath_prepend(directory)
        if name == "django":
            _configure_django(module)
        return importlib.import_module(module)


def _configure_django(module: str) -> None:
    """Given an app with users of Django in a database in memory, and one user."""
    import django
    from django.conf import settings

    settings.configure(
        ALLOWED_HOSTS=["testserver"],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes"],
        LOGGING_CONFIG=None,
        LOGIN_URL="/sign-in",
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            f"{module}.PlazaMiddleware",
        ],
        ROOT_URLCONF=module,
        SECRET_KEY="of tests",
        SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
        TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
        USE_TZ=True,
    )
    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    User.objects.create_user("ann", id=int(USER))


class _FastApiClient:
    """The test client of FastAPI, with the words of Django's."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def get(self, path: str, follow: bool) -> Any:
        return self._client.get(path, follow_redirects=follow)

    def post(self, path: str, fields: dict[str, str], follow: bool) -> Any:
        return self._client.post(path, data=fields, follow_redirects=follow)


@contextmanager
def open_browser(
    name: str,
    url: str,
    key: str,
    transport: httpx.MockTransport | None = None,
    *,
    signed_in: bool = True,
) -> Iterator[AppBrowser]:
    """Run an app on Plaza at ``url``, or on a stand-in, with its user signed in."""
    module = load_app(name)
    with pytest.MonkeyPatch.context() as patch:
        if name == "fastapi":
            with warnings.catch_warnings(action="ignore"):  # about httpx, which plaza-client needs
                from fastapi.testclient import TestClient

            plaza = AsyncPlaza(url, token=key, retry=_ONCE, transport=transport)
            patch.setattr(module, "plaza", plaza)
            overrides = {module.current_user: lambda: USER} if signed_in else {}
            patch.setattr(module.app, "dependency_overrides", overrides)
            with TestClient(module.app, raise_server_exceptions=False) as client:
                yield AppBrowser(_FastApiClient(client))
            return
        import django.test
        from django.contrib.auth.models import User

        with Plaza(url, token=key, retry=_ONCE, transport=transport) as sync_plaza:
            patch.setattr(module, "plaza", sync_plaza)
            patch.setitem(sys.modules, module.__name__, module)
            browser = django.test.Client(enforce_csrf_checks=True)
            if signed_in:
                browser.force_login(User.objects.get(id=int(USER)))
            yield AppBrowser(browser)
