"""What the API's keys stand for, by the settings alone."""

import pytest

from hermes_agent.app.api_settings import ApiKeySettings, ApiSettings, standing_by_key
from hermes_agent.core.inbound import Standing

KEYS = ApiSettings(keys={"anna": ApiKeySettings(), "a:b": ApiKeySettings(standing=Standing.OWNER)})


@pytest.mark.parametrize(
    ("principal", "standing"),
    [
        ("api:owner", Standing.OWNER),
        ("api:anna", Standing.MEMBER),
        ("api:a:b", Standing.OWNER),
        ("api:a", None),
        ("api:", None),
        ("API:owner", None),
        ("cli:owner", None),
        ("webhook:anna", None),
        ("owner", None),
    ],
)
def test_a_key_stands_for_what_the_settings_say_and_for_nobody_else(principal, standing):
    assert standing_by_key(KEYS, principal) is standing


def test_a_key_of_the_owner_s_name_is_what_it_is_set_to():
    named = ApiSettings(keys={"owner": ApiKeySettings(standing=Standing.GUEST)})
    assert standing_by_key(named, "api:owner") is Standing.GUEST
