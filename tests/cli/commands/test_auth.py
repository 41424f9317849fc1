"""`hermes login`, `hermes logout`, `hermes auth list`."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_agent.core.errors import NoModel
from hermes_agent.host.inbound.listener import serve_in_thread
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.model_servers import serving_in_thread
from tests.cli.shell import typed
from tests.doubles.model_servers import responses_model
from tests.providers.signin.double import TokenServer


@pytest.fixture
def tokens() -> Iterator[TokenServer]:
    server = TokenServer()
    with serve_in_thread(server.handle) as served:
        server.url = served.url
        yield server


def test_signing_in_by_a_code_keeps_the_tokens_and_chooses_the_model(tmp_path: Path, tokens: TokenServer) -> None:
    said = typed(tmp_path, "login", "openai-codex", OPENAI_AUTH_URL=tokens.url)

    assert f"Open {tokens.url}/codex/device" in said.err
    assert "ABCD-1234" in said.err
    assert said.out == "Signed in to ChatGPT as me@example.org.\n"
    assert "The default model is now openai-codex/gpt-6-sol." in said.err
    assert stat.S_IMODE((tmp_path / "auth.json").stat().st_mode) == 0o600
    assert "access-0" not in said.out + said.err


def test_who_is_signed_in_asks_with_the_token(tmp_path: Path, tokens: TokenServer) -> None:
    typed(tmp_path, "login", "openai-codex", OPENAI_AUTH_URL=tokens.url)

    with serving_in_thread(responses_model([Say("Hello.")], keys=("access-0",))) as server:
        said = typed(tmp_path, "model", "test", OPENAI_CODEX_BASE_URL=server.url)
        (exchange,) = server.exchanges

    assert said.out == "Hello.\n"
    assert exchange.request.headers["chatgpt-account-id"] == "acc-1"
    assert "max_output_tokens" not in exchange.body


def test_a_sign_in_leaves_a_chosen_model_alone(tmp_path: Path, tokens: TokenServer) -> None:
    (tmp_path / "config.yaml").write_text("model: {default: demo/scripted}\n")
    said = typed(tmp_path, "login", "openai-codex", OPENAI_AUTH_URL=tokens.url)

    assert "demo/scripted stays the default model; `hermes model set openai-codex`" in said.err


def test_sign_ins_and_keys_are_listed_without_their_values(tmp_path: Path, tokens: TokenServer) -> None:
    said = typed(tmp_path, "login", "openai-codex", "--json", OPENAI_AUTH_URL=tokens.url)
    listed = typed(tmp_path, "auth", "list", "--json", GROQ_API_KEY="a-secret-of-groq")

    assert json.loads(said.out)["vendor"] == "openai-codex"
    assert [(way["vendor"], way["how"]) for way in json.loads(listed.out)] == [
        ("openai-codex", "sign-in (me@example.org)"),
        ("groq", "GROQ_API_KEY"),
    ]
    plain = typed(tmp_path, "auth", "list", GROQ_API_KEY="a-secret-of-groq").out
    assert "renewed by itself" in plain
    assert "a-secret-of-groq" not in plain + listed.out


def test_signing_out_forgets_the_tokens(tmp_path: Path, tokens: TokenServer) -> None:
    typed(tmp_path, "login", "openai-codex", OPENAI_AUTH_URL=tokens.url)

    assert typed(tmp_path, "logout", "openai-codex").out == "Signed out of OpenAI Codex (ChatGPT).\n"
    assert "access-0" not in (tmp_path / "auth.json").read_text()
    assert json.loads(typed(tmp_path, "logout", "openai-codex", "--json").out)["forgotten"] is False
    with pytest.raises(NoModel, match="hermes login openai-codex"):
        typed(tmp_path, "model", "test")


def test_a_vendor_without_a_sign_in_says_what_it_takes(tmp_path: Path) -> None:
    with pytest.raises(NoModel, match=r"takes a key.*GROQ_API_KEY.*`openai-codex`"):
        typed(tmp_path, "login", "groq")
    with pytest.raises(NoModel, match="Did you mean `openai-codex`"):
        typed(tmp_path, "login", "openai-codx")


def test_where_there_is_nothing_the_ways_in_are_named(tmp_path: Path) -> None:
    assert "hermes setup" in typed(tmp_path, "auth", "list").err
    assert typed(tmp_path, "auth", "list", "--json").out == "[]\n"
