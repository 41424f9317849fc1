"""The name that a person probably meant."""

from __future__ import annotations

import pytest

from hermes_agent.host.nearest import nearest_key

KNOWN = ("agent.max_turns", "agent.max_money", "model.default", "web.backend", "web.enabled", "channels.NAME.enabled")


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("agent.max_turn", "agent.max_turns"),
        ("Max_Turns", "agent.max_turns"),
        ("modl.default", "model.default"),
        ("qqq", ""),
        ("channels.discord.enabeld", "channels.discord.enabled"),
        ("enabeld", "web.enabled"),
    ],
)
def test_the_nearest_known_key_is_named(wrong: str, near: str) -> None:
    assert nearest_key(wrong, KNOWN) == near


def test_where_nothing_is_known_nothing_is_near() -> None:
    assert nearest_key("a", ()) == ""
