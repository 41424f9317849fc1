"""Which route a name leads to."""

from dataclasses import replace

import pytest

from hermes_agent.app.models.routes import route_of
from hermes_agent.app.settings import Settings
from hermes_agent.core.errors import NoModel
from hermes_agent.host.config import Loaded
from hermes_agent.host.paths import Home
from hermes_agent.host.secrets import open_secrets
from hermes_agent.providers.settings import ModelSettings

KEYS = {"OPENAI_API_KEY": "a-key", "ANTHROPIC_API_KEY": "another-key"}


def loaded(settings: ModelSettings, **overridden: str) -> Loaded[Settings]:
    value = Settings(model=settings)
    return Loaded(value=value, sources={}, problems=(), basis="file", plain={}, overridden=overridden)


def route(tmp_path, settings: ModelSettings, model: str = "", **overridden: str):
    return route_of(loaded(settings, **overridden), open_secrets(Home(root=tmp_path, base=tmp_path), KEYS), model)


def test_the_configured_model_is_asked_where_it_is(tmp_path):
    found = route(tmp_path, ModelSettings(default="custom/m", base_url="http://127.0.0.1:9/v1"))

    assert (found.name, found.base_url) == ("custom/m", "http://127.0.0.1:9/v1")


def test_a_model_that_is_named_goes_before_the_configured_one(tmp_path):
    assert route(tmp_path, ModelSettings(default="openai/gpt-5.2"), "anthropic/claude-x").name == "anthropic/claude-x"


def test_another_vendors_key_does_not_go_to_the_configured_address(tmp_path):
    found = route(tmp_path, ModelSettings(default="custom/m", base_url="http://127.0.0.1:9/v1"), "openai/gpt-5.2")

    assert "127.0.0.1" not in found.base_url


@pytest.mark.parametrize("written", ["custom/m", "ollama/qwen3", "llama", ""])
def test_neither_does_the_key_of_a_vendor_that_the_environment_names(tmp_path, written):
    settings = ModelSettings(default="openai/gpt-5.2", base_url="http://127.0.0.1:9/v1")

    found = route(tmp_path, settings, **{"model.default": written})

    assert found.base_url == "https://api.openai.com/v1"


def test_a_model_of_the_same_vendor_stays_at_the_configured_address(tmp_path):
    settings = ModelSettings(default="openai/gpt-5.4", base_url="http://127.0.0.1:9/v1")

    for written in ("openai/gpt-5.2", "gpt-5.2"):
        found = route(tmp_path, replace(settings, provider="openai"), **{"model.default": written})
        assert found.base_url == "http://127.0.0.1:9/v1"
    found = route(tmp_path, replace(settings, default="gpt-5.2", provider="openai"), "openai/gpt-5.4")
    assert found.base_url == "http://127.0.0.1:9/v1"


def test_no_key_names_both_ways_on(tmp_path):
    with pytest.raises(NoModel, match=r"`hermes setup`.*`hermes demo`"):
        route_of(loaded(ModelSettings()), open_secrets(Home(root=tmp_path, base=tmp_path), {}))


@pytest.mark.parametrize(("usual", "named"), [("custom/m", "custom/n"), ("openai/gpt-5.2", "custom/m"), ("m", "n")])
def test_what_has_no_address_of_its_own_is_asked_where_the_settings_say(tmp_path, usual, named):
    found = route(tmp_path, ModelSettings(default=usual, base_url="http://127.0.0.1:9/v1"), named)

    assert found.base_url == "http://127.0.0.1:9/v1"
