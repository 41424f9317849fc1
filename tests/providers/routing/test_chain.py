"""A route with all the keys that it may be asked with."""

from hermes_agent.core.clock import SystemClock
from hermes_agent.host.http import Http
from hermes_agent.providers.route import load_vendor
from hermes_agent.providers.routing.chain import Credential, Use, by_name, credentials_of, in_order, leg_of, single
from hermes_agent.providers.settings import CredentialSettings, ModelSettings
from tests.providers.asking import KEY, route_to

ROUTE = route_to("openai/gpt-5.2")


def test_a_route_alone_has_its_own_key():
    (leg,) = single(ROUTE, Http(), SystemClock(), ModelSettings()).legs
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


OPENAI = load_vendor("openai")


def names(secrets: dict[str, str], settings: CredentialSettings | None = None) -> list[str]:
    return [one.name for one in credentials_of(OPENAI, secrets.get, settings)]


def test_numbered_names_belong_to_the_vendor_up_to_the_first_gap():
    secrets = {"OPENAI_API_KEY": "a", "OPENAI_API_KEY_2": "b", "OPENAI_API_KEY_3": "c", "OPENAI_API_KEY_5": "e"}
    assert names(secrets) == ["OPENAI_API_KEY", "OPENAI_API_KEY_2", "OPENAI_API_KEY_3"]
    assert names({"OPENAI_API_KEY_2": "b"}) == []


def test_named_credentials_are_taken_instead_and_in_their_order():
    secrets = {"OPENAI_API_KEY": "a", "WORK_KEY": "b", "HOME_KEY": "c"}
    assert names(secrets, CredentialSettings(names=("WORK_KEY", "MISSING", "HOME_KEY"))) == ["WORK_KEY", "HOME_KEY"]


def test_a_vendor_whose_keys_are_set_by_name_has_them_under_its_usual_name():
    secrets = by_name(
        {"WORK": "w", "ANTHROPIC_API_KEY": "a"}.get, {"openai": CredentialSettings(names=("NONE", "WORK"))}
    )
    assert [secrets(name) for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "X")] == ["w", "a", None]


def test_one_key_under_two_names_is_one_credential_and_no_key_holds_a_blank():
    secrets = {"OPENAI_API_KEY": "a", "OPENAI_API_KEY_2": "a", "OPENAI_API_KEY_3": "b c"}
    assert names(secrets) == ["OPENAI_API_KEY"]


def test_a_key_is_not_shown_and_its_mark_changes_with_it():
    one, other = Credential(name="K", key="sk-secret"), Credential(name="K", key="sk-other")
    assert "sk-secret" not in repr(one)
    assert one.mark != other.mark
    assert "secret" not in one.mark
    assert Credential(name="", key="").mark == ""


def test_the_strategies_order_by_need_by_time_and_by_number():
    pool = [Credential(name=name, key=name) for name in ("A", "B", "C")]
    uses = {"A": Use(calls=5, last=30.0), "B": Use(calls=9, last=10.0), "C": Use(calls=1, last=20.0)}
    command_queue = {
        strategy: "".join(one.name for one in in_order(pool, strategy, uses))
        for strategy in ("fill_first", "round_robin", "least_used")
    }
    assert command_queue == {"fill_first": "ABC", "round_robin": "BCA", "least_used": "CAB"}
    assert [one.name for one in in_order(pool, "least_used", {"A": Use(calls=1)})] == ["B", "C", "A"]
