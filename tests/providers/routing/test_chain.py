"""A route with all the keys that it may be asked with."""

from hermes_agent.providers.routing.chain import leg_of, single
from hermes_agent.providers.settings import CredentialSettings
from tests.providers.asking import KEY, route_to

ROUTE = route_to("openai/gpt-5.2")


def test_a_route_alone_has_its_own_key():
    (leg,) = single(ROUTE).legs
    assert [(one.name, one.key) for one in leg.credentials] == [("", KEY)]


def test_a_leg_has_every_key_of_the_vendor_and_gives_the_route_with_each():
    secrets = {"OPENAI_API_KEY": KEY, "OPENAI_API_KEY_2": "second"}
    leg = leg_of(ROUTE, secrets.get, CredentialSettings(strategy="least_used"))
    assert leg.strategy == "least_used"
    route = leg.with_credential("OPENAI_API_KEY_2")
    assert (route.key, route.credential, route.name) == ("second", "OPENAI_API_KEY_2", ROUTE.name)


def test_a_key_that_was_got_in_another_way_comes_alone():
    leg = leg_of(ROUTE, {"OPENAI_API_KEY": "another"}.get)
    assert [one.key for one in leg.credentials] == [KEY]
