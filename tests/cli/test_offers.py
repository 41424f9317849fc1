"""The models that can be named."""

from __future__ import annotations

from pathlib import Path

from hermes_agent.cli.offers import is_ready, offers_of, searched
from hermes_agent.cli.options import Invocation
from hermes_agent.cli.surface import Surface
from hermes_agent.providers.catalog import known_models
from hermes_agent.providers.route import load_vendor


def surface(home: Path, **variables: str) -> Surface:
    return Surface(invocation=Invocation(), variables={"HERMES_HOME": str(home), **variables})


def test_every_model_of_the_catalogue_is_offered(tmp_path: Path) -> None:
    assert {each.model for each in offers_of(surface(tmp_path))} == set(known_models())
    assert all(each.model.startswith("zai/") for each in offers_of(surface(tmp_path), "zai"))


def test_ready_is_what_has_a_key_or_needs_none(tmp_path: Path) -> None:
    here = surface(tmp_path, XAI_API_KEY="k")
    ready = {name: is_ready(here, load_vendor(name)) for name in ("xai", "groq", "ollama", "openai-codex")}
    assert ready == {"xai": True, "groq": False, "ollama": True, "openai-codex": False}


def test_abilities_are_looked_for_like_words(tmp_path: Path) -> None:
    offers = offers_of(surface(tmp_path, XAI_API_KEY="k"))
    assert {each.model for each in searched(offers, "ready xai images")} == {"xai/grok-4.5", "xai/grok-4.3"}
    assert all(each.files for each in searched(offers, "files"))
