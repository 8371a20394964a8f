"""The page as it is sent."""

import hashlib
from base64 import b64encode
from functools import cache
from importlib.resources import files

from starlette.responses import Response

SCRIPTS = ("chart.js", "stream.js", "main.js")


@cache
def page_response() -> Response:
    """The page with its script and style inside, which alone may run and apply."""
    folder = files(__package__ or "")
    style = folder.joinpath("page.css").read_text(encoding="utf-8")
    script = "\n".join(folder.joinpath(each).read_text(encoding="utf-8") for each in SCRIPTS)
    page = folder.joinpath("page.html").read_text(encoding="utf-8")
    page = page.replace("/* style */", style).replace("/* script */", script)
    return Response(page, media_type="text/html", headers=_headers(style, script))


def _headers(style: str, script: str) -> dict[str, str]:
    rules = (
        "default-src 'none'",
        f"script-src {_source(script)}",
        f"style-src {_source(style)}",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
    return {
        "content-security-policy": "; ".join(rules),
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-cache",
    }


def _source(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{b64encode(digest).decode()}'"
