"""How cards move, as a pure function."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from hermes_agent.core.errors import LostLease, UnknownCard
from hermes_agent.store.work.cards import COMMAND, HUMAN, PROFILE, Card, Ending, Reason, Status
from hermes_agent.work.board.rules import (
    COOL_DOWN,
    FROM,
    MAX_CHECKS,
    MAX_CRASHES,
    By,
    NotMoved,
    Order,
    Role,
    Verb,
    moved,
)

OWNER = By(name="cli:me", role=Role.OWNER, sees_all=True)
MEMBER = By(name="telegram:2", role=Role.MEMBER)
AGENT = By(name="cli:me", role=Role.AGENT, sees_all=True)
BOARD = By(name="board", role=Role.BOARD, owner="w1")
HOLDER = By(name="t_1", role=Role.WORKER, card="t_1", owner="w1", epoch=1)


def card(status: Status = Status.READY, **more) -> Card:
    return Card(id="t_1", board="main", title="x", status=status, **more)


def running(**more) -> Card:
    return card(Status.RUNNING, owner="w1", epoch=1, **more)


def end(found: Card, ending: Ending, now: float = 10.0) -> Card:
    return moved(found, Order(verb=Verb.END, ending=ending), BOARD, now)


def test_a_claim_holds_a_card_under_a_higher_epoch():
    held = moved(card(), Order(verb=Verb.CLAIM), BOARD, 5.0)
    assert (held.status, held.owner, held.epoch, held.started) == (Status.RUNNING, "w1", 1, 5.0)


@pytest.mark.parametrize(("owner", "epoch"), [("w1", 2), ("w2", 1), ("", 1)])
def test_whoever_lost_the_lease_moves_nothing(owner: str, epoch: int):
    stale = replace(HOLDER, owner=owner, epoch=epoch)
    for verb in (Verb.COMPLETE, Verb.BLOCK):
        with pytest.raises(LostLease):
            moved(running(), Order(verb=verb), stale, 0.0)


def test_complete_work_is_done_or_goes_to_its_check():
    assert moved(running(), Order(verb=Verb.COMPLETE, summary="s"), HOLDER, 1.0).status is Status.DONE
    for check in (HUMAN, f"{PROFILE}eve", f"{COMMAND}true"):
        new = moved(running(validator=check), Order(verb=Verb.COMPLETE), HOLDER, 1.0)
        assert (new.status, new.owner, new.is_due) == (Status.REVIEW, "", check != HUMAN)


def test_a_receipt_decides_what_the_worker_cannot():
    review = card(Status.REVIEW, validator=f"{COMMAND}pytest", owner="w1", epoch=3)
    assert moved(review, Order(verb=Verb.RECEIPT, code=0), BOARD, 1.0).done
    refused = moved(review, Order(verb=Verb.RECEIPT, code=1), BOARD, 1.0)
    assert (refused.status, refused.attempts, refused.done) == (Status.READY, 1, False)
    with pytest.raises(NotMoved, match="check passes"):
        moved(replace(review, owner=""), Order(verb=Verb.COMPLETE), OWNER, 1.0)


def test_a_person_accepts_what_waits_for_a_person():
    review = card(Status.REVIEW, validator=HUMAN)
    assert moved(review, Order(verb=Verb.COMPLETE), OWNER, 1.0).status is Status.DONE
    with pytest.raises(NotMoved, match="a person may"):
        moved(review, Order(verb=Verb.COMPLETE), AGENT, 1.0)


def test_failures_of_the_card_are_counted_apart_from_deaths_of_the_machine():
    found = running()
    assert end(found, Ending.GAVE_UP).attempts == 1
    assert end(replace(found, attempts=1), Ending.TIMED_OUT).blocked is Reason.FAILED
    crashed = end(found, Ending.CRASHED)
    assert (crashed.status, crashed.attempts, crashed.crashes) == (Status.READY, 0, 1)
    assert end(replace(found, crashes=MAX_CRASHES - 1), Ending.RECLAIMED).blocked is Reason.FAILED


def test_a_rate_limit_costs_no_attempt_and_waits():
    rests = end(running(), Ending.RATE_LIMITED)
    assert (rests.status, rests.attempts, rests.crashes, rests.ready_at) == (Status.READY, 0, 0, 10.0 + COOL_DOWN)


def test_a_check_that_dies_leaves_the_card_in_review_and_not_for_ever():
    review = card(Status.REVIEW, validator=f"{COMMAND}true", owner="w1", epoch=3)
    again = end(review, Ending.CRASHED)
    assert (again.status, again.owner, again.is_due) == (Status.REVIEW, "", True)
    assert end(replace(review, crashes=MAX_CHECKS - 1), Ending.CRASHED).status is Status.BLOCKED


@pytest.mark.parametrize("reason", [Reason.NEEDS_INPUT, Reason.CAPABILITY, Reason.FAILED])
def test_only_a_person_unblocks_what_a_person_has_to_answer(reason: Reason):
    blocked = card(Status.BLOCKED, blocked=reason, created_by="t_1")
    worker = replace(HOLDER, card="t_1")
    for by in (AGENT, BOARD, worker):
        with pytest.raises(NotMoved):
            moved(blocked, Order(verb=Verb.UNBLOCK), by, 1.0)
    assert moved(blocked, Order(verb=Verb.UNBLOCK), OWNER, 1.0).status is Status.READY


def test_the_same_block_a_third_time_in_a_row_needs_a_new_plan():
    found = running()
    for expected in (Status.BLOCKED, Status.BLOCKED, Status.TRIAGE):
        found = moved(found, Order(verb=Verb.BLOCK, reason=Reason.CAPABILITY), HOLDER, 1.0)
        assert found.status is expected
        found = replace(found, status=Status.RUNNING, owner="w1", epoch=1)


def test_a_worker_leaves_the_cards_of_others_alone():
    other = replace(card(), id="t_2", created_by="cli:me")
    for verb in (Verb.CANCEL, Verb.ASSIGN, Verb.MOVE, Verb.COMPLETE):
        with pytest.raises(NotMoved, match="not yours"):
            moved(other, Order(verb=verb), HOLDER, 1.0)
    own = replace(other, created_by="t_1")
    assert moved(own, Order(verb=Verb.CANCEL), HOLDER, 1.0).status is Status.CANCELLED


def test_a_worker_cannot_complete_a_card_of_its_own_that_another_works_on():
    other = replace(running(), id="t_2", created_by="t_1")
    for verb in (Verb.COMPLETE, Verb.BLOCK):
        with pytest.raises(NotMoved):
            moved(other, Order(verb=verb), HOLDER, 1.0)


def test_a_member_changes_only_what_is_theirs():
    with pytest.raises(UnknownCard, match="There is no card t_1"):
        moved(card(created_by="cli:me"), Order(verb=Verb.CANCEL), MEMBER, 1.0)
    assert moved(card(created_by="telegram:2"), Order(verb=Verb.CANCEL), MEMBER, 1.0).status is Status.CANCELLED


def test_moving_a_running_card_takes_it_from_its_holder():
    back = moved(running(), Order(verb=Verb.MOVE, status=Status.TODO), OWNER, 1.0)
    assert (back.status, back.owner, back.epoch) == (Status.TODO, "", 2)
    with pytest.raises(NotMoved, match="reached by working"):
        moved(card(), Order(verb=Verb.MOVE, status=Status.DONE), OWNER, 1.0)
    with pytest.raises(NotMoved, match="waits for 1"):
        moved(card(Status.TODO, parents_left=1), Order(verb=Verb.START), OWNER, 1.0)


ACTORS = st.sampled_from([OWNER, MEMBER, AGENT, BOARD, HOLDER, replace(HOLDER, epoch=9)])
ORDERS = st.builds(
    Order,
    verb=st.sampled_from(list(Verb)),
    status=st.sampled_from(list(Status)),
    reason=st.sampled_from([each for each in Reason if each is not Reason.FAILED]),
    ending=st.sampled_from([Ending.CRASHED, Ending.GAVE_UP, Ending.RATE_LIMITED, Ending.TIMED_OUT]),
    code=st.integers(0, 1),
)


@given(
    steps=st.lists(st.tuples(ACTORS, ORDERS), max_size=25),
    check=st.sampled_from(["", HUMAN, f"{COMMAND}true"]),
    left=st.integers(0, 1),
)
def test_no_sequence_of_verbs_breaks_what_holds_of_a_card(steps: list[tuple[By, Order]], check: str, left: int):
    found = card(Status.TODO if left else Status.READY, validator=check, parents_left=left)
    for by, order in steps:
        try:
            new = moved(found, order, by, 1.0)
        except (NotMoved, LostLease, UnknownCard):
            continue
        assert found.status in FROM[order.verb]
        assert new.epoch >= found.epoch
        assert new.epoch > found.epoch or new.owner == found.owner
        assert bool(new.owner) == (new.status is Status.RUNNING) or new.status in (Status.REVIEW, Status.TRIAGE)
        assert not (new.parents_left and new.status in (Status.READY, Status.RUNNING, Status.DONE))
        assert (new.status is Status.BLOCKED) == (new.blocked is not None)
        assert new.done == (new.done or new.status is Status.DONE)
        assert found.status is not Status.ARCHIVED
        if new.done and not found.done and check.startswith(COMMAND):
            assert (order.verb, order.code) == (Verb.RECEIPT, 0)
        found = new
