"""Signing in: what a person is shown, what they bring back, what is kept."""

from __future__ import annotations

import pytest

from hermes_agent.core.errors import AuthRefused
from hermes_agent.host.http import Http
from hermes_agent.providers.signin.ways import DEVICE_SECONDS, Issuer, Shown, by_device, claims_of
from hermes_agent.testing.clock import FakeClock
from tests.providers.signin.double import jwt, token_server


@pytest.fixture
async def http():
    http = Http()
    yield http
    await http.close()


async def test_a_device_is_shown_a_code_and_gets_its_tokens_once_it_was_typed(http: Http):
    shown: list[Shown] = []
    async with token_server(pending=3) as server:
        tokens = await by_device(Issuer(server.facts, http), shown.append, FakeClock(auto=True))

    assert shown == [Shown(page=f"{server.url}/codex/device", code="ABCD-1234")]
    assert (tokens.access, tokens.refresh, tokens.account, tokens.person) == (
        "access-0",
        "refresh-0",
        "acc-1",
        "me@example.org",
    )
    assert server.asked[-1][1]["code_verifier"] == "v"


async def test_a_code_that_nobody_types_ends_with_a_sentence(http: Http):
    async with token_server(pending=10**9) as server:
        clock = FakeClock(auto=True)
        issuer = Issuer(server.facts, http)
        with pytest.raises(AuthRefused, match="within 15 minutes"):
            await by_device(issuer, lambda _: None, Late(clock))
    assert len(server.asked) < 5


class Late(FakeClock):
    """A clock on which every pause is the longest that there is."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(auto=True)

    async def sleep(self, seconds: float) -> None:
        await super().sleep(DEVICE_SECONDS)


def test_the_claims_of_what_is_no_token_are_none():
    assert claims_of(jwt(exp=5)) == {"exp": 5}
    assert [claims_of(text) for text in ("", "a.b.c", "a.!!!.c", "a.bnVsbA.c")] == [{}] * 4
