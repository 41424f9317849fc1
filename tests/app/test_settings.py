"""The settings as one tree."""

import pytest

from hermes_agent.app.auxiliary.settings import AuxiliaryModel, AuxiliarySettings
from hermes_agent.app.settings import (
    ApiKeySettings,
    ApiSettings,
    BudgetSettings,
    LimitSettings,
    Settings,
    standing_by_key,
)
from hermes_agent.core.chat import Standing
from hermes_agent.core.spending import Limit, Rules, Scope, UnknownPrice


def test_without_settings_nothing_is_limited():
    assert Settings().rules == Rules(limits=(), unknown_price=UnknownPrice.REFUSE)


def test_each_scope_that_is_set_becomes_a_limit():
    budget = BudgetSettings(
        call=LimitSettings(money=0.0), principal=LimitSettings(tokens=5), day=LimitSettings(money=1.1, tokens=7)
    )
    auxiliary = AuxiliarySettings(title=AuxiliaryModel(money=0.02), web=AuxiliaryModel(tokens=9))
    settings = Settings(budget=budget, auxiliary=auxiliary)

    assert settings.rules.limits == (
        Limit(scope=Scope.CALL, money=0),
        Limit(scope=Scope.PRINCIPAL, tokens=5),
        Limit(scope=Scope.DAY, money=1_100_000_000, tokens=7),
        Limit(scope=Scope.PURPOSE, money=20_000_000, purpose="title"),
        Limit(scope=Scope.PURPOSE, tokens=9, purpose="web"),
    )


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
