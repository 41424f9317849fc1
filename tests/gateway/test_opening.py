"""The channels that are switched on, by the settings."""

import pytest

from hermes_agent.app.service.settings import ChannelSettings, GatewaySettings
from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.opening import kinds_of


def test_a_channel_that_there_is_not_is_an_error():
    with pytest.raises(ConfigError, match="There is no channel `telegrm`"):
        kinds_of(GatewaySettings(channels={"telegrm": ChannelSettings(enabled=True)}))


def test_a_channel_that_is_off_is_not_loaded():
    assert kinds_of(GatewaySettings(channels={})) == {}
