"""Pictures of the demo crowd: six scenes and six faces.

The API takes https URLs only, and nothing here has a certificate. So these URLs have a reserved
name, and on a local stack the web app reads them from its own origin (``local.web``).
"""

from cli.paths import ROOT

FOLDER = ROOT / "local" / "pictures"
URL = "https://pictures.plaza.example/"
SCENES = ("harbour", "old town", "market", "hills", "lake", "night train")
FACES = 6
_WITHOUT = 5  # every so many users have no avatar


def of_title(title: str) -> list[str]:
    """Return the URLs of the pictures of a post; none unless its title names a scene."""
    return [f"{URL}{scene.replace(' ', '-')}.svg" for scene in SCENES if scene in title]


def of_user(number: int) -> str | None:
    """Return the URL of the avatar of the crowd's user ``number``, or None."""
    return None if number % _WITHOUT == _WITHOUT - 1 else f"{URL}person-{number % FACES + 1}.svg"
