"""`/yolo` is for one run of the person who said it; and what of an environment counts."""

from __future__ import annotations

from hermes_agent.core.effects import Capability
from hermes_agent.tools.permission.requests import Request, fingerprint
from hermes_agent.tools.permission.unasked import RunGrant, Standpoint, Unasked

ME, OTHER = "cli:me", "telegram:7"


def test_it_holds_for_the_run_under_way_and_no_later_one() -> None:
    unasked = Unasked()
    run = unasked.begin("s")
    unasked.say("s", ME, running=True)

    assert run.holds_for(ME)
    assert not unasked.begin("s").holds_for(ME)


def test_said_between_runs_it_holds_for_the_next_one() -> None:
    unasked = Unasked()
    unasked.say("s", ME, running=False)

    assert unasked.begin("s").holds_for(ME)
    assert not unasked.begin("s").holds_for(ME)


def test_it_holds_for_nobody_else_and_no_other_session() -> None:
    unasked = Unasked()
    run, elsewhere = unasked.begin("s"), unasked.begin("t")
    unasked.say("s", ME, running=True)

    assert not run.holds_for(OTHER)
    assert not run.holds_for("")
    assert not elsewhere.holds_for(ME)


def test_it_can_be_taken_back() -> None:
    unasked = Unasked()
    run = unasked.begin("s")
    unasked.say("s", ME, running=True)
    unasked.take_back("s")

    assert not run.holds_for(ME)


def test_a_standpoint_grants_all_and_no_silence_by_itself() -> None:
    assert Standpoint().granted_to({ME}) == frozenset(Capability)
    assert not Standpoint().unasked.holds_for(ME)
    assert RunGrant() == Standpoint().unasked


def test_what_decides_changes_the_fingerprint_and_what_does_not_leaves_it() -> None:
    base = {"PATH": "/bin", "TERM": "dumb", "TARGET": "a"}

    assert fingerprint(base) == fingerprint({**base, "TERM": "xterm", "TARGET": "b"})
    assert fingerprint(base) != fingerprint({**base, "PATH": "/tmp:/bin"})
    assert fingerprint(base, "rm $TARGET") != fingerprint({**base, "TARGET": "b"}, "rm $TARGET")


def test_a_request_is_asked_about_unless_said_otherwise() -> None:
    assert Request.__dataclass_fields__["unasked"].default is False
