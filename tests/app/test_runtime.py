"""Which route a name leads to."""

import pytest

from hermes_agent.app.runtime import route_of
from hermes_agent.app.settings import Settings
from hermes_agent.core.errors import NoModel
from hermes_agent.host.paths import Home
from hermes_agent.host.secrets import open_secrets
from hermes_agent.providers.settings import ModelSettings

KEYS = {"OPENAI_API_KEY": "a-key", "ANTHROPIC_API_KEY": "another-key"}


def route(tmp_path, settings: ModelSettings, model: str = ""):
    return route_of(Settings(model=settings), open_secrets(Home(root=tmp_path, base=tmp_path), KEYS), model)


def test_the_configured_model_is_asked_where_it_is(tmp_path):
    found = route(tmp_path, ModelSettings(default="custom/m", base_url="http://127.0.0.1:9/v1"))

    assert (found.name, found.base_url) == ("custom/m", "http://127.0.0.1:9/v1")


def test_a_model_that_is_named_goes_before_the_configured_one(tmp_path):
    assert route(tmp_path, ModelSettings(default="openai/gpt-5.2"), "anthropic/claude-x").name == "anthropic/claude-x"


def test_another_vendors_key_does_not_go_to_the_configured_address(tmp_path):
    found = route(tmp_path, ModelSettings(default="custom/m", base_url="http://127.0.0.1:9/v1"), "openai/gpt-5.2")

    assert "127.0.0.1" not in found.base_url


def test_no_key_names_both_ways_on(tmp_path):
    with pytest.raises(NoModel, match=r"`hermes setup`.*`hermes demo`"):
        route_of(Settings(), open_secrets(Home(root=tmp_path, base=tmp_path), {}))


@pytest.mark.parametrize(("usual", "named"), [("custom/m", "custom/n"), ("openai/gpt-5.2", "custom/m"), ("m", "n")])
def test_what_has_no_address_of_its_own_is_asked_where_the_settings_say(tmp_path, usual, named):
    found = route(tmp_path, ModelSettings(default=usual, base_url="http://127.0.0.1:9/v1"), named)

    assert found.base_url == "http://127.0.0.1:9/v1"
