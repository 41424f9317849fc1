"""The tokens of this home's sign-ins: `auth.json`, for its owner alone, replaced as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HomeError
from hermes_agent.host.files import read_small, write_private

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """One sign-in. Times are seconds since 1970; `expires` 0: it does not say.

    `renewing` is when a renewal was begun whose end is not written down yet: its refresh token may be used up. `lost`
    is why there is no way back but signing in again; empty: there is no need to.
    """

    access: str = field(repr=False)
    refresh: str = field(default="", repr=False)
    expires: float = 0.0
    account: str = ""
    person: str = ""
    since: float = 0.0
    renewed: float = 0.0
    renewing: float = 0.0
    lost: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    version: int
    sign_ins: dict[str, SignedIn]


class AuthFile:
    """`auth.json`; whoever changes it holds its lock (`token_refresh.TokenRefresh`)."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Mapping[str, SignedIn]:
        """The sign-ins by vendor; none where there is no file. Raises `HomeError` for a file that is not ours."""
        content = read_small(self.path)
        if content is None:
            return {}
        try:
            kept = msgspec.json.decode(content, type=_File)
        except msgspec.MsgspecError as error:
            raise HomeError(
                f"{self.path} holds no sign-ins of this program ({error}): move it away, then `hermes login VENDOR`."
            ) from error
        if kept.version > VERSION:
            raise HomeError(f"{self.path} was written by a later version of Hermes: update this one.")
        return kept.sign_ins

    def put(self, vendor: str, signed_in: SignedIn | None) -> None:
        """Keep a sign-in, or with None forget it; on the disk when this returns. Raises `HomeError`."""
        kept = {name: one for name, one in self.read().items() if name != vendor}
        if signed_in is not None:
            kept[vendor] = signed_in
        content = msgspec.json.encode(_File(version=VERSION, sign_ins=kept))
        write_private(self.path, msgspec.json.format(content, indent=2))
