"""The models that can be named."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.cli.offers import is_ready, offers_of, searched, single
from hermes_agent.cli.options import Invocation
from hermes_agent.cli.surface import Surface
from hermes_agent.core.errors import NoModel
from hermes_agent.providers.catalog import known_models
from hermes_agent.providers.route import load_vendor


def test_a_mixture_works_for_no_purpose(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("moa:\n  council:\n    members: [demo/scripted, demo/scripted]\n")
    surface = Surface(invocation=Invocation(), variables={"HERMES_HOME": str(tmp_path)})

    assert single(surface, "demo/scripted").name == "demo/scripted"
    with pytest.raises(NoModel, match="name a single model"):
        single(surface, "moa/council")


def surface(home: Path, **variables: str) -> Surface:
    return Surface(invocation=Invocation(), variables={"HERMES_HOME": str(home), **variables})


def test_every_model_of_the_catalogue_is_offered(tmp_path: Path) -> None:
    assert {each.model for each in offers_of(surface(tmp_path))} == set(known_models())
    assert all(each.model.startswith("zai/") for each in offers_of(surface(tmp_path), "zai"))


def test_ready_is_what_has_a_key_or_needs_none(tmp_path: Path) -> None:
    here = surface(tmp_path, XAI_API_KEY="k")
    ready = {name: is_ready(here, load_vendor(name)) for name in ("xai", "groq", "ollama", "openai-codex")}
    assert ready == {"xai": True, "groq": False, "ollama": True, "openai-codex": False}


def test_a_vendor_whose_requests_are_signed_is_ready_where_credentials_left_a_trace(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    bedrock = load_vendor("bedrock")
    assert not is_ready(surface(tmp_path), bedrock)
    assert is_ready(surface(tmp_path, AWS_PROFILE="work"), bedrock)
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").touch()
    assert is_ready(surface(tmp_path), bedrock)


def test_what_a_vendor_gives_away_has_a_price_of_nothing(tmp_path: Path) -> None:
    (offer,) = offers_of(surface(tmp_path), "demo")
    assert (offer.price.input, offer.price.output) == (0, 0)


def test_abilities_are_looked_for_like_words(tmp_path: Path) -> None:
    offers = offers_of(surface(tmp_path, XAI_API_KEY="k"))
    found = {each.model for each in searched(offers, "ready xai images")}
    assert found == {each.model for each in offers if each.model.startswith("xai/") and each.images}
    assert "xai/grok-4.5" in found
    assert all(each.files for each in searched(offers, "files"))
