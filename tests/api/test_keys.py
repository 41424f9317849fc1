"""Keys: each its own person, none short, none shared."""

import pytest

from hermes_agent.api.keys import open_keys
from hermes_agent.app.settings import API_KEY, ApiKeySettings, ApiSettings
from hermes_agent.core.chat import Standing
from hermes_agent.core.errors import ConfigError

LONG = "0123456789abcdef"
ANNA = ApiSettings(keys={"anna": ApiKeySettings(secret="ANNA")})


def secrets(**values: str):
    return lambda name: values.get(name, "")


def test_each_key_is_a_person():
    keys = open_keys(ANNA, secrets(**{API_KEY: LONG, "ANNA": f"{LONG}a"}))

    assert keys.whose(LONG).standing is Standing.OWNER
    assert (keys.whose(f"{LONG}a").key, keys.whose(f"{LONG}a").standing) == ("api:anna", Standing.MEMBER)
    assert keys.whose(f"{LONG}b") is None
    assert LONG not in repr(keys)


def test_the_owner_s_key_may_be_left_out_where_others_come_in():
    assert open_keys(ANNA, secrets(ANNA=LONG)).whose(LONG).user == "anna"


@pytest.mark.parametrize(
    ("settings", "values", "words"),
    [
        (ApiSettings(), {}, "needs a key"),
        (ApiSettings(), {API_KEY: LONG[:-1]}, "has 15 characters"),
        (ANNA, {API_KEY: LONG}, "ANNA is not set"),
        (ANNA, {API_KEY: LONG, "ANNA": LONG}, "another name has the same key"),
        (ApiSettings(keys={"x": ApiKeySettings()}), {API_KEY: LONG}, "names no secret"),
        (
            ApiSettings(keys={"owner": ApiKeySettings(secret="X")}),
            {API_KEY: LONG, "X": f"{LONG}x"},
            "give this key another",
        ),
    ],
)
def test_a_key_that_lets_nobody_in_safely_is_an_error(settings, values, words):
    with pytest.raises(ConfigError, match=words):
        open_keys(settings, secrets(**values))
