"""The chats of a job's letters, and the words for what came of its times."""

import pytest

from hermes_agent.app.chats.settings import ChannelSettings, GatewaySettings
from hermes_agent.app.work.cron_facts import InstantFacts, outcome, run_line
from hermes_agent.app.work.cron_places import Destinations
from hermes_agent.core.chat import Standing, Standings
from hermes_agent.store.work.cron.records import Job, Plan
from hermes_agent.work.cron.schedule import parse

CHANNELS = {
    "ntfy": ChannelSettings(home="news"),
    "telegram": ChannelSettings(home="-55:7"),
    "email": ChannelSettings(),
}


def job(deliver: tuple[str, ...], origin: str = "", principal: str = "ntfy:ann") -> Job:
    plan = Plan(schedule=parse("@daily", "UTC", 0.0), deliver=deliver, origin=origin)
    return Job(id="j1", principal=principal, name="n", plan=plan, created=0.0)


def destinations() -> Destinations:
    standings = Standings(lambda key: Standing.OWNER if key == "ntfy:ann" else Standing.MEMBER)
    return Destinations(gateway=GatewaySettings(channels=CHANNELS), standings=standings)


@pytest.mark.parametrize(
    ("deliver", "origin", "targets"),
    [
        (("local",), "", []),
        (("origin",), "", []),
        (("origin",), "cli:folder:/work", []),
        (("origin",), "telegram:group:-9:3:ann", ["telegram:group:-9:3"]),
        (("telegram",), "", ["telegram:group:-55:7"]),
        (("telegram:12:3",), "", ["telegram:dm:12:3"]),
        (("all",), "", ["ntfy:dm:news", "telegram:group:-55:7"]),
        (("all", "ntfy"), "", ["ntfy:dm:news", "telegram:group:-55:7"]),
        (("email",), "", []),
    ],
)
def test_a_target_is_a_chat_or_none(deliver: tuple[str, ...], origin: str, targets: list[str]):
    assert [each.key for each in destinations().targets(job(deliver, origin))] == targets


def test_failures_go_home_or_to_the_chat_of_a_member():
    found = destinations()
    assert [each.key for each in found.homes(job(("local",)))] == ["ntfy:dm:news"]
    assert [each.key for each in found.homes(job((), "telegram:dm:12"))] == ["telegram:group:-55:7"]
    assert [each.key for each in found.homes(job((), "email:dm:a@b", "email:bob"))] == ["email:dm:a@b"]


@pytest.mark.parametrize(
    ("state", "delivery", "said"),
    [
        ("ran", "sent", "ran, delivered"),
        ("ran", "pending", "ran, not delivered yet"),
        ("ran", "failed", "ran, delivery: failed"),
        ("ran", "none", "ran"),
    ],
)
def test_an_outcome_says_whether_it_was_delivered(state: str, delivery: str, said: str):
    assert outcome(InstantFacts(due=0, state=state, delivery=delivery)) == said


def test_a_time_is_a_line():
    missed = InstantFacts(due=0, state="missed", why="down", counts=3, words="a\nb", session="s1")
    assert run_line(missed) == "Thu 1970-01-01 00:00 UTC  missed (3 times), down  a b  [s1]"
