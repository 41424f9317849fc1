"""Matrix's client-server API: one call, and what its failures mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from hermes_agent.gateway.channel import ChannelError, MessageGone, NeverHere, TokenRefused
from hermes_agent.gateway.service import Answer, Service

CLIENT, MEDIA = "_matrix/client", "_matrix/media/v3"
GIVEN_OUT = "_matrix/client/v1/media/download"
REFUSED = frozenset({"M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED", "M_USER_LOCKED", "M_USER_SUSPENDED"})
ABSENT = frozenset({"M_NOT_FOUND", "M_UNKNOWN", "M_INVALID_PARAM"})
"""What servers say of an event that they do not know; Synapse says M_UNKNOWN where a relation leads to none."""


class Client:
    """One account on one homeserver."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def call(
        self,
        method: str,
        path: str,
        content: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        reads: bool = False,
        version: str = "v3",
    ) -> dict[str, Any]:
        """Call what is under `/_matrix/client/VERSION`. Raises `ChannelError`; `MessageGone` where what is named is
        not there."""
        question = f"?{urlencode(query)}" if query else ""
        return await self._service.ask(method, f"{CLIENT}/{version}/{path}{question}", content, reads=reads)

    async def upload(self, name: str, media_type: str, content: bytes) -> str:
        """Keep a file on the homeserver; its `mxc:` address. Nobody sees it yet."""
        url = f"{self._service.base}/{MEDIA}/upload?{urlencode({'filename': name})}"
        answer = await self._service.call("POST", url, content=content, media_type=media_type, reads=True)
        if answer.status >= 400:
            raise meaning(answer)
        return str(answer.values()["content_uri"])

    async def download(self, address: str, most: int) -> bytes:
        """The bytes of an `mxc:` address, as `Media` says. A server that has not heard of asking with the token is
        asked without."""
        scheme, _, rest = address.partition("://")
        server, _, id_ = rest.partition("/")
        if scheme != "mxc" or not server or not id_ or "/" in id_:
            raise NeverHere("The file has no address of Matrix.")
        place = joined(server, id_)
        answer = await self._service.fetch(f"{self._service.base}/{GIVEN_OUT}/{place}", most)
        if answer.status == 404 and _said(answer)[0] == "M_UNRECOGNIZED":
            answer = await self._service.fetch(f"{self._service.base}/{MEDIA}/download/{place}", most)
        if answer.status != 200:
            raise NeverHere(f"The homeserver does not give the file out ({answer.status}).")
        return answer.body


def joined(*parts: str) -> str:
    """A path of such parts: ids of Matrix hold signs that mean something in addresses."""
    return "/".join(quote(part, safe="", errors="replace") for part in parts)


def meaning(answer: Answer) -> ChannelError:
    """The failure that an answer from 400 on is."""
    code, words = _said(answer)
    if code in REFUSED:
        return TokenRefused(f"The homeserver does not accept MATRIX_ACCESS_TOKEN ({code}: {words}).")
    if code in ABSENT:
        return MessageGone(f"It is not there ({code}: {words}).")
    if code == "M_TOO_LARGE":
        return NeverHere("It is too large for this homeserver.")
    return NeverHere(f"The homeserver refuses it: {answer.status} {words} ({code}).")


def _said(answer: Answer) -> tuple[str, str]:
    return str(answer.fields.get("errcode", "")), str(answer.fields.get("error", ""))
