"""Signing in: what a person is shown, what they bring back, what is kept."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from hermes_agent.core.errors import AuthRefused, NoModel
from hermes_agent.host.http import Http
from hermes_agent.host.paths import Home
from hermes_agent.providers.signin.token_refresh import TokenRefresh
from hermes_agent.providers.signin.ways import ANTHROPIC, DEVICE_SECONDS, Issuer, Shown, by_code, by_device, claims_of
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


@pytest.mark.parametrize(
    "shape", ["{code}", "{code}#{state}", "https://x/oauth/code/callback?code={code}&state={state}"]
)
async def test_a_pasted_code_is_read_in_every_shape(http: Http, shape: str):
    shown: list[Shown] = []

    async def paste() -> str:
        query = parse_qs(urlsplit(shown[0].page).query)
        assert query["code_challenge_method"] == ["S256"]
        return f"  {shape.format(code='code-1', state=query['state'][0])}\n"

    async with token_server() as server:
        facts = replace(ANTHROPIC, issuer=server.url)
        tokens = await by_code(Issuer(facts, http, client_id="mine"), shown.append, paste)

    assert tokens.access == "access-0"
    assert (server.asked[-1][1]["code"], server.asked[-1][1]["client_id"]) == ("code-1", "mine")


async def test_a_code_of_another_sign_in_is_refused(http: Http):
    async def paste() -> str:
        return "code-1#another"

    async with token_server() as server:
        facts = replace(ANTHROPIC, issuer=server.url)
        with pytest.raises(AuthRefused, match="another sign-in"):
            await by_code(Issuer(facts, http, client_id="mine"), lambda _: None, paste)
    assert server.asked == []


def test_without_a_client_of_one_s_own_it_is_said_what_is_allowed(tmp_path, http: Http):
    renewal = TokenRefresh(Home(root=tmp_path, base=tmp_path), FakeClock(), {}.get)
    with pytest.raises(NoModel, match=r"does not let.*ANTHROPIC_CLIENT_ID.*ANTHROPIC_API_KEY"):
        renewal.issuer(ANTHROPIC, http)


def test_the_claims_of_what_is_no_token_are_none():
    assert claims_of(jwt(exp=5)) == {"exp": 5}
    assert [claims_of(text) for text in ("", "a.b.c", "a.!!!.c", "a.bnVsbA.c")] == [{}] * 4
