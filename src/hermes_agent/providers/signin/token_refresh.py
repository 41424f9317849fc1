"""Refreshes sign-in tokens, one process at a time on this machine, so that no two use the same refresh token."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import field, replace
from functools import partial
from pathlib import Path

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import AuthRefused, HomeError
from hermes_agent.host.http import Http
from hermes_agent.host.late import late
from hermes_agent.host.locks import held
from hermes_agent.host.paths import Home, read_small, write_private
from hermes_agent.providers.route import Grant, KeySource
from hermes_agent.providers.signin.ways import Issuer, SignIn, Tokens
from hermes_agent.providers.vendor import Vendor

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """Stored tokens of one sign-in. Times are seconds since 1970; `expires` 0: unknown. `renewing` is the start of a
    refresh whose result is not stored yet: its refresh token may be used up. `lost` is why the person must sign in
    again; empty: no need."""

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


def sign_in_of(vendor: Vendor) -> SignIn:
    """How people sign in to a vendor that has a way to."""
    facts: SignIn = late(vendor.sign_in)
    return facts


class AuthFile:
    """The token file `auth.json`; writers hold its lock (see `TokenRefresh`)."""

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
        """Store a sign-in, or with None delete it; on disk when this returns. Raises `HomeError`."""
        kept = {name: one for name, one in self.read().items() if name != vendor}
        if signed_in is not None:
            kept[vendor] = signed_in
        content = msgspec.json.encode(_File(version=VERSION, sign_ins=kept))
        write_private(self.path, msgspec.json.format(content, indent=2))


# A token is renewed so many seconds before it expires, so that none expires on its way.
EARLY = 300.0
# What a token without a known end is trusted for.
USUAL = 3600.0
# What a token address answers for a refresh token that it does not take; other refusals are about something else.
USED_UP = (400, 401)
Secrets = Callable[[str], str | None]


class TokenRefresh:
    """Stores and refreshes the sign-ins of one home; `hide` gets the tokens that are given out, to be redacted.

    Every change is made under a file lock shared by all processes. Before a refresh token is sent, `auth.json`
    records that; the new tokens are stored before anybody gets them. A process killed in between leaves that
    record: the next one tries once more and, where the token is used up, reports that.
    """

    def __init__(self, home: Home, clock: Clock, secrets: Secrets, hide: Callable[..., None] = lambda *_: None) -> None:
        self._hide = hide
        self.file = AuthFile(home.root / "auth.json")
        self._home = home
        self._clock = clock
        self._secrets = secrets

    def has(self, vendor: Vendor) -> bool:
        """Whether there is a sign-in, even one that must be repeated. Raises `HomeError`."""
        return bool(vendor.sign_in) and vendor.name in self.file.read()

    def source(self, vendor: Vendor) -> KeySource | None:
        """The key source of the vendor's sign-in; None without one. Raises `HomeError`."""
        return partial(self.grant, vendor) if self.has(vendor) else None

    def issuer(self, facts: SignIn, http: Http) -> Issuer:
        """The vendor's token endpoint."""
        return Issuer(facts, http, issuer=(self._secrets(facts.issuer_env) or "").strip())

    async def keep(self, facts: SignIn, tokens: Tokens) -> SignedIn:
        """Store a new sign-in. Raises `HomeError`."""
        signed_in = replace(self._from(tokens), since=self._clock.now())
        async with self._locked():
            self.file.put(facts.vendor, signed_in)
        return signed_in

    async def forget(self, vendor: str) -> bool:
        """Delete a sign-in; False where there was none. Raises `HomeError`."""
        async with self._locked():
            known = vendor in self.file.read()
            if known:
                self.file.put(vendor, None)
        return known

    async def grant(self, vendor: Vendor, http: Http, *, refused: str = "") -> Grant:
        """A valid token, refreshed where needed; `refused` is one that the vendor rejected.

        Raises `AuthRefused` where nobody is signed in or they must sign in again, `Unreachable` or `ServerFailed`
        where the refresh failed for now, `HomeError`.
        """
        facts = sign_in_of(vendor)
        signed_in = self._known(facts)
        if not self._fresh(signed_in, refused):
            async with self._locked():
                signed_in = self._known(facts)
                if not self._fresh(signed_in, refused):
                    signed_in = await self._renewed(facts, signed_in, http)
        self._hide("SIGN_IN", signed_in.access, signed_in.refresh)
        return Grant(
            key=signed_in.access,
            headers=tuple((name, value.format(account=signed_in.account)) for name, value in facts.headers),
        )

    def _known(self, facts: SignIn) -> SignedIn:
        signed_in = self.file.read().get(facts.vendor)
        if signed_in is None:
            raise AuthRefused(
                f"You are not signed in to {facts.title}: `hermes login {facts.vendor}`.", provider=facts.vendor
            )
        if signed_in.lost:
            raise _must_sign_in(facts, signed_in.lost)
        return signed_in

    def _fresh(self, signed_in: SignedIn, refused: str) -> bool:
        return signed_in.access != refused and signed_in.expires > self._clock.now() + EARLY

    async def _renewed(self, facts: SignIn, signed_in: SignedIn, http: Http) -> SignedIn:
        """The next tokens, on the disk when this returns; the lock is held."""
        if not signed_in.refresh:
            raise self._lost(facts, signed_in, "it has expired")
        interrupted = signed_in.renewing
        self.file.put(facts.vendor, replace(signed_in, renewing=self._clock.now()))
        try:
            tokens = await self.issuer(facts, http).renewed(signed_in.refresh)
        except AuthRefused as error:
            if error.status not in USED_UP:
                self.file.put(facts.vendor, signed_in)
                raise
            why = "a process that was renewing it was ended before it could finish; " if interrupted else ""
            raise self._lost(facts, signed_in, f"{why}{error}") from error
        renewed = replace(
            self._from(tokens),
            since=signed_in.since,
            renewed=self._clock.now(),
            account=tokens.account or signed_in.account,
            person=tokens.person or signed_in.person,
        )
        self.file.put(facts.vendor, renewed)
        return renewed

    def _lost(self, facts: SignIn, signed_in: SignedIn, why: str) -> AuthRefused:
        """Write down that there is no way back, so that nobody tries the token again."""
        self.file.put(facts.vendor, replace(signed_in, lost=why))
        return _must_sign_in(facts, why)

    def _from(self, tokens: Tokens) -> SignedIn:
        expires = tokens.expires or self._clock.now() + (tokens.lasts or USUAL)
        return SignedIn(
            access=tokens.access,
            refresh=tokens.refresh,
            expires=expires,
            account=tokens.account,
            person=tokens.person,
        )

    @asynccontextmanager
    async def _locked(self) -> AsyncIterator[None]:
        self._home.ensure()
        async with held(self._home.locks / "auth.lock"):
            yield


def _must_sign_in(facts: SignIn, why: str) -> AuthRefused:
    return AuthRefused(
        f"The sign-in to {facts.title} can no longer be used: {why.rstrip('.')}. "
        f"`hermes login {facts.vendor}` signs in again.",
        provider=facts.vendor,
        status=401,
    )
