"""`hermes model`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes_agent.core.errors import ModelNotFound, NoModel
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.cli.shell import typed

KEYS = {"OPENAI_API_KEY": "test-key-of-the-environment"}


def test_the_catalogue_says_what_is_ready(tmp_path: Path) -> None:
    offers = json.loads(typed(tmp_path, "model", "list", "--vendor", "openai", "--json", **KEYS).out)

    assert offers
    assert all(offer["model"].startswith("openai/") and offer["ready"] for offer in offers)
    assert "no key" in typed(tmp_path, "model", "list").out


def test_an_unknown_vendor_is_told_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(NoModel, match="Did you mean `openai`"):
        typed(tmp_path, "model", "list", "--vendor", "opnai")


def test_the_model_in_force_is_shown_without_its_key(tmp_path: Path) -> None:
    said = typed(tmp_path, "model", "show", **KEYS).out

    assert "OPENAI_API_KEY (environment)" in said
    assert "the first vendor with a key" in said
    assert KEYS["OPENAI_API_KEY"] not in said


def test_without_any_key_the_two_ways_on_are_named(tmp_path: Path) -> None:
    with pytest.raises(NoModel, match=r"`hermes setup`.*`hermes demo`"):
        typed(tmp_path, "model", "show")


def test_a_chosen_model_is_kept(tmp_path: Path) -> None:
    typed(tmp_path, "model", "set", "openai/gpt-5.2", **KEYS)

    assert json.loads(typed(tmp_path, "model", "show", "--json", **KEYS).out)["chosen by"] == "config.yaml:2"
    said = typed(tmp_path, "model", "set", "openai/gpt-5.2", HERMES_MODEL="ollama/x", **KEYS)
    assert said.err == "But HERMES_MODEL says ollama/x, and the environment comes first.\n"


def test_a_model_is_asked_and_the_call_is_in_the_ledger(tmp_path: Path) -> None:
    with serving_in_thread(openai_model([Say("Hello there.")], keys=())) as server:
        variables = {**KEYS, "OPENAI_BASE_URL": server.url}
        said = typed(tmp_path, "model", "test", "openai/gpt-5.2", **variables)

    assert said.out == "Hello there.\n"
    assert "tokens in" in said.err
    cost = json.loads(typed(tmp_path, "cost", "--by", "purpose", "--json").out)
    assert [(total["key"], total["calls"]) for total in cost] == [("test", 1)]


def test_a_model_that_is_not_there_names_the_route(tmp_path: Path) -> None:
    named = pytest.raises(ModelNotFound, match=r"openai/gpt-5\.2 at 127\.0\.0\.1")
    with serving_in_thread(openai_model([Say("no")], keys=(), models=("other",))) as server, named:
        typed(tmp_path, "model", "test", "openai/gpt-5.2", OPENAI_BASE_URL=server.url, **KEYS)
