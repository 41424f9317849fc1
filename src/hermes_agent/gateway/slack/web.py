"""Slack's Web API: a method is called, and an error's name becomes what it means for what was asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from hermes_agent.gateway.channel import (
    ChannelError,
    MessageGone,
    NeverHere,
    NotNow,
    OutcomeUnknown,
    TokenRefused,
)
from hermes_agent.gateway.service import Service
from hermes_agent.gateway.upload import Upload

FORM = "application/x-www-form-urlencoded"
TOKEN = frozenset(
    {"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "org_login_required"}
    | {"not_allowed_token_type", "app_uninstalled"}
)
LATER = frozenset({"ratelimited", "rate_limited", "service_unavailable", "request_timeout", "team_added_to_org"})
OPEN = frozenset({"fatal_error", "internal_error"})
"""Slack says of these that some of it may have been done."""
GONE = frozenset(
    {"message_not_found", "cant_update_message", "cant_delete_message", "edit_window_closed", "file_not_found"}
    | {"file_deleted", "compliance_exports_prevent_deletion", "no_item_specified"}
)


class Web:
    """Slack by one token. `base` is `https://slack.com/api` without a slash at the end."""

    def __init__(self, service: Service, base: str) -> None:
        self._service = service
        self._base = base

    async def call(self, method: str, *, reads: bool = False, **values: Any) -> dict[str, Any]:  # noqa: ANN401  whatever JSON holds
        """Call a method with its arguments; those that are None are left out. Raises `ChannelError`."""
        answer = await self._service.call(
            "POST", f"{self._base}/{method}", content=form(values), media_type=FORM, reads=reads
        )
        found = answer.values()
        if not found.get("ok"):
            raise meaning(str(found.get("error", "unknown_error")), found, reads=reads)
        return found

    async def upload(self, url: str, file: Upload) -> None:
        """Put a file where Slack wants it. Nobody sees it yet."""
        answer = await self._service.call("POST", url, content=file, reads=True)
        if answer.status >= 300:
            raise (NotNow if answer.status == 408 else NeverHere)(f"Slack does not take the file ({answer.status}).")

    async def download(self, url: str, most: int) -> bytes:
        """A file's bytes, as `Media` says."""
        answer = await self._service.fetch(url, most)
        if answer.status != 200 or (answer.headers.get("content-type") or "").startswith("text/html"):
            raise NeverHere("Slack does not give the file out: the app needs the scope files:read.")
        return answer.body


def form(values: Mapping[str, Any]) -> bytes:
    """Arguments as a form, with lists and objects as JSON: the one shape that every method of Slack takes."""
    given = {name: value for name, value in values.items() if value is not None}
    return urlencode({n: value if isinstance(value, str) else json.dumps(value) for n, value in given.items()}).encode()


def meaning(name: str, found: Mapping[str, Any], *, reads: bool = False) -> ChannelError:
    """The failure that an error of Slack is."""
    if name in TOKEN:
        return TokenRefused(
            f"Slack does not know the token any more ({name}): see SLACK_BOT_TOKEN and SLACK_APP_TOKEN."
        )
    if name in LATER or (reads and name in OPEN):
        return NotNow(f"Slack wants to be asked later ({name}).")
    if name in OPEN:
        return OutcomeUnknown(f"Slack failed ({name}).")
    if name in GONE:
        return MessageGone(f"The message is gone or stays as it is ({name}).")
    if name == "missing_scope":
        return NeverHere(f"The Slack app needs the scope {found.get('needed', '')}.")
    return NeverHere(f"Slack refuses it: {name.replace('_', ' ')}.")
