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


def test_what_the_configured_server_serves_is_listed_first(tmp_path: Path) -> None:
    with serving_in_thread(openai_model([], keys=(), models=("local-a", "local-b"))) as server:
        (tmp_path / "config.yaml").write_text(f"model:\n  default: custom/local-a\n  base_url: {server.url}\n")
        offers = json.loads(typed(tmp_path, "model", "list", "--json").out)

    assert [offer["model"] for offer in offers[:2]] == ["custom/local-a", "custom/local-b"]
    assert "custom/local-a" not in typed(tmp_path, "model", "list").out, "a server that is gone lists nothing"


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


def test_a_model_without_an_address_is_asked_in_this_process(tmp_path: Path) -> None:
    assert typed(tmp_path, "model", "test", "demo").err.startswith("demo/scripted in this process: ")


def test_a_model_that_is_not_there_names_the_route(tmp_path: Path) -> None:
    named = pytest.raises(ModelNotFound, match=r"openai/gpt-5\.2 at 127\.0\.0\.1")
    with serving_in_thread(openai_model([Say("no")], keys=(), models=("other",))) as server, named:
        typed(tmp_path, "model", "test", "openai/gpt-5.2", OPENAI_BASE_URL=server.url, **KEYS)


def test_models_are_found_by_parts_of_their_names_and_by_what_they_can(tmp_path: Path) -> None:
    found = json.loads(typed(tmp_path, "model", "search", "mistral", "images", "--json").out)

    assert found
    assert all("mistral" in offer["model"] and offer["images"] for offer in found)
    assert "Nothing of the catalogue fits" in typed(tmp_path, "model", "search", "no-such-model").err
    assert typed(tmp_path, "model", "search", "no-such-model", "--json").out == "[]\n"


def test_what_is_known_of_any_model_is_shown(tmp_path: Path) -> None:
    said = typed(tmp_path, "model", "show", "minimax/MiniMax-M3", MINIMAX_API_KEY="k" * 10).out

    assert "1,000,000 tokens" in said
    assert "above 524,288 tokens $0.6 in" in said
    assert "MINIMAX_API_KEY" in said


def test_what_a_person_knows_of_a_model_is_shown_and_listed(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "models:\n  ollama/mine: {window: 8192, tools: false}\n  openai/gpt-5.2: {price: {input: 1, output: 2}}\n"
    )
    listed = json.loads(typed(tmp_path, "model", "list", "--json", **KEYS).out)
    said = typed(tmp_path, "model", "set", "ollama/mine")

    mine = next(offer for offer in listed if offer["model"] == "ollama/mine")
    assert (mine["window"], mine["tools"], mine["ready"]) == (8192, False, True)
    assert next(o for o in listed if o["model"] == "openai/gpt-5.2")["price"]["input"] == 1
    assert "calls no tools" in said.err
    assert "a window of 8,192 tokens, of which a reply may take 2,048" in said.err


def test_a_choice_as_json_says_what_the_environment_makes_of_it(tmp_path: Path) -> None:
    said = typed(tmp_path, "model", "set", "openai/gpt-5.2", "--json", HERMES_MODEL="demo/scripted", **KEYS)

    assert json.loads(said.out) == {"model": "openai/gpt-5.2", "effective": "demo/scripted", "notes": []}


def test_without_a_terminal_one_is_picked_by_its_number_or_name(tmp_path: Path) -> None:
    by_name = typed(tmp_path, "model", "pick", stdin="openai/gpt-5.2\n", **KEYS)
    by_number = typed(tmp_path, "model", "pick", "--vendor", "openai", "--json", stdin="99\n1\n", **KEYS)

    assert by_name.out == "The default model is now openai/gpt-5.2.\n"
    assert "no `99` in the list" in by_number.err
    assert json.loads(by_number.out)["model"].startswith("openai/")


def test_who_picks_nothing_changes_nothing(tmp_path: Path) -> None:
    said = typed(tmp_path, "model", "pick", stdin="\n", **KEYS)

    assert (said.code, said.err.endswith("Nothing was changed.\n")) == (130, True)
    assert not (tmp_path / "config.yaml").exists()


def test_a_model_is_chosen_and_shown_before_its_key_is_there(tmp_path: Path) -> None:
    said = typed(tmp_path, "model", "set", "openai/gpt-5.2")
    shown = typed(tmp_path, "model", "show")

    assert said.out == "openai/gpt-5.2 is now the default model.\n"
    assert "OPENAI_API_KEY" in said.err
    assert "none" in next(line for line in shown.out.splitlines() if line.startswith("key"))
    assert "OPENAI_API_KEY" in shown.err
    with pytest.raises(NoModel, match="region"):
        typed(tmp_path, "model", "show", "bedrock/x", AWS_REGION="nowhere")


@pytest.mark.parametrize(("name", "near"), [("demo/typo", "demo/scripted"), ("openai/gpt-5.22", "openai/gpt-5.2")])
def test_a_name_that_looks_mistyped_is_taken_by_force_alone(tmp_path: Path, name: str, near: str) -> None:
    with pytest.raises(NoModel, match=f"Did you mean `{near}`"):
        typed(tmp_path, "model", "set", name)
    assert not (tmp_path / "config.yaml").exists()

    assert name in typed(tmp_path, "model", "set", name, "--force").out


def test_a_new_name_that_is_like_no_other_is_taken(tmp_path: Path) -> None:
    assert "openai/wholly-new" in typed(tmp_path, "model", "set", "openai/wholly-new").out
