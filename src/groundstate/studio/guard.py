"""Who may ask: this machine, from pages of the studio itself.

A server on the loopback can still be reached by a page of another site, by a form it sends or by a
name that it makes point here; both are refused before anything is answered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from fastapi import Request, Response
from fastapi.responses import JSONResponse

LOOPBACK = "127.0.0.1"
NAMES = frozenset({LOOPBACK, "localhost", "[::1]"})
HEADERS = {
    # nothing from elsewhere is loaded or asked: the pages work without a network
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; style-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


async def guard(request: Request, call: Callable[[Request], Awaitable[Response]]) -> Response:
    """Refuse questions under another name or from another site, and send safe headers."""
    host = _host(f"//{request.headers.get('host', '')}")
    origin = request.headers.get("origin")
    if host not in NAMES:
        return _refused(f"the studio answers at {LOOPBACK} only, not at {host or 'no name'}")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        return _refused("the studio answers its own pages only")
    answer = await call(request)
    for name, value in HEADERS.items():
        answer.headers.setdefault(name, value)
    return answer


def _host(address: str) -> str:
    """The name in an address, without its port."""
    netloc = urlsplit(address).netloc
    return netloc if netloc.endswith("]") else netloc.rpartition(":")[0] or netloc


def _refused(why: str) -> JSONResponse:
    return JSONResponse({"error": why}, status_code=403)
