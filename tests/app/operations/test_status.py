"""`hermes status` names what runs, what waits for whom, and what nobody runs."""

from pathlib import Path

import pytest

from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.status import Piece, State, Status, _piece, show_status, status_text
from hermes_agent.app.settings import SERVED
from hermes_agent.core.chat import Principal, Standing
from hermes_agent.core.events import Asked
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.store.work.activity import Active
from tests.app.place import place

ANNA = Principal(platform="api", user="anna", standing=Standing.MEMBER)


async def test_a_run_that_asks_waits_for_its_person_and_for_nobody_else(tmp_path: Path):
    async with place(tmp_path, [Call("clarify", {"question": "Which?"}), Say("Done.")]) as here:
        await here.tell("Hi")
        await here.until(Asked)
        status = await show_status(Access(system=here.runtime, who=here.runtime.owner))
        theirs = await show_status(Access(system=here.runtime, who=ANNA))

    (piece,) = status.work
    assert (piece.kind, piece.id, piece.state, piece.note) == (
        "session",
        here.record.id,
        State.WAITING,
        "for an answer",
    )
    assert theirs == Status(serving=(), work=())
    assert f"waits   session {here.record.id}" in status_text(status)


async def test_work_that_nobody_serves_is_told_until_somebody_does(tmp_path: Path):
    async with place(tmp_path, [Say("Done.")]) as here:
        access = Access(system=here.runtime, who=here.runtime.owner)
        await here.runtime.store.inbox.accept(here.inbound("Hi"), here.record.id, SERVED)
        alone = await show_status(access)
        async with open_system(here.runtime.home, Options(queue=SERVED, own_only=False)) as served:
            await here.ended(0)
            await served.hermes.idle()
            status = await show_status(access)

    assert alone.warning.startswith("Nobody serves this home: 1 piece of work wait")
    assert "`hermes worker` runs it" in status_text(alone)
    assert (status.warning, status.work) == ("", ())
    assert status_text(status).startswith("Serving: 1 process, since")


@pytest.mark.parametrize(
    ("facts", "state", "note"),
    [
        ({"held": True}, State.RUNNING, ""),
        ({"held": True, "waits": True}, State.WAITING, "for other sessions"),
        ({"question": "c1.approval"}, State.WAITING, "for a yes or no"),
        (
            {"ready_at": 99.0, "error": "The worker died."},
            State.STUCK,
            "The worker died. `hermes sessions resume s` tries",
        ),
        ({"queue": "cli"}, State.STUCK, "`hermes -r s` goes on with it."),
        ({}, State.QUEUED, ""),
    ],
)
def test_each_state_is_told_with_what_it_waits_for(facts: dict[str, object], state: State, note: str):
    usual = {"queue": SERVED, "held": False, "waits": False, "crashes": 0, "error": "", "ready_at": 0.0}
    who = {"session": "s", "since": 1.0, "principal": "p", "surface": "cli", "title": "T", "question": ""}
    piece = _piece(Active(**(usual | who | facts)), 10.0, is_served=True)

    assert piece.state is state
    assert piece.note.startswith(note)


def test_nothing_is_said_in_a_sentence():
    assert status_text(Status(serving=(), work=())).endswith("Nothing runs or waits.")
    shown = status_text(Status(serving=(), work=(Piece(kind="card", id="c", title="", state=State.QUEUED, since=0.0),)))
    assert shown.splitlines()[1] == "queued  card c"
