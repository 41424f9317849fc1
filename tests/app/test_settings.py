"""The settings as one tree."""

from hermes_agent.app.auxiliary.settings import AuxiliaryModel, AuxiliarySettings
from hermes_agent.app.settings import BudgetSettings, LimitSettings, Settings
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
