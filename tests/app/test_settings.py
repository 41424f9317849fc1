"""The settings as one tree."""

from hermes_agent.app.settings import BudgetSettings, LimitSettings
from hermes_agent.core.spending import Limit, Rules, Scope, UnknownPrice


def test_without_settings_nothing_is_limited():
    assert BudgetSettings().rules == Rules(limits=(), unknown_price=UnknownPrice.REFUSE)


def test_each_scope_that_is_set_becomes_a_limit():
    settings = BudgetSettings(
        call=LimitSettings(money=0.0), principal=LimitSettings(tokens=5), day=LimitSettings(money=1.1, tokens=7)
    )

    assert settings.rules.limits == (
        Limit(scope=Scope.CALL, money=0),
        Limit(scope=Scope.PRINCIPAL, tokens=5),
        Limit(scope=Scope.DAY, money=1_100_000_000, tokens=7),
    )
