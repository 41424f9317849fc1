"""What a person may set about runs."""

from dataclasses import fields

from hermes_agent.agent.settings import AgentSettings


def test_a_run_has_ninety_turns_and_no_other_limit():
    settings = AgentSettings()

    assert settings.max_turns == 90
    assert settings.max_seconds is None


def test_every_setting_explains_itself():
    assert all(field.metadata["doc"] for field in fields(AgentSettings))
