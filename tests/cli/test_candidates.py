"""What could answer on this machine."""

from __future__ import annotations

from pathlib import Path

from hermes_agent.cli.offers import BUILT_IN, candidates
from hermes_agent.cli.options import Invocation
from hermes_agent.cli.surface import Surface
from hermes_agent.providers.demo.script import Say
from hermes_agent.providers.local import Place
from hermes_agent.providers.signin.token_refresh import AuthFile, SignedIn
from hermes_agent.testing.model_servers import openai_model, serving


def surface(home: Path, **variables: str) -> Surface:
    return Surface(invocation=Invocation(), variables={"HERMES_HOME": str(home), **variables})


async def test_a_server_of_this_machine_offers_its_models(tmp_path: Path) -> None:
    async with serving(openai_model([Say("x")], keys=(), models=("a/b", "c"))) as server:
        places = (Place(title="vLLM", vendor="custom", base_url=server.url),)
        found = await candidates(surface(tmp_path), places)

    assert [(each.model, each.base_url) for each in found[:-1]] == [
        ("custom/a/b", server.url),
        ("custom/c", server.url),
    ]
    assert found[0].route(surface(tmp_path)).base_url == server.url


async def test_what_is_configured_comes_first_and_nothing_twice(tmp_path: Path) -> None:
    here = surface(tmp_path, HERMES_MODEL="openai/gpt-5.2", OPENAI_API_KEY="x" * 20, OPENROUTER_API_KEY="y" * 20)

    found = await candidates(here, ())

    assert found[0].model == "openai/gpt-5.2"
    assert [each.why for each in found] == ["as configured", "OPENROUTER_API_KEY is in the environment", BUILT_IN]


async def test_where_nobody_listens_only_the_built_in_model_is_offered(tmp_path: Path) -> None:
    places = (Place(title="nobody", vendor="custom", base_url="http://127.0.0.1:9/v1"),)

    assert [each.model for each in await candidates(surface(tmp_path), places)] == ["demo/scripted"]


async def test_a_sign_in_is_offered_like_a_key(tmp_path: Path) -> None:
    AuthFile(tmp_path / "auth.json").put("openai-codex", SignedIn(access="a", expires=9e9))

    found = await candidates(surface(tmp_path), ())

    assert (found[0].model, found[0].why) == ("openai-codex/gpt-6-sol", "you are signed in")
    assert found[0].route(surface(tmp_path)).source is not None
