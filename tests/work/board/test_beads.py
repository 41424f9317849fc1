"""Exchange with beads: its export comes in whole and goes out as it was, but for what changed here."""

import json
from pathlib import Path

import pytest

from hermes_agent.core.errors import HermesError
from hermes_agent.store.work.cards import Status
from hermes_agent.work.board.beads import exported, import_issues, read_issues
from hermes_agent.work.board.board import Board
from hermes_agent.work.board.rules import Order, Verb
from tests.work.board.boards import ME, made, opened

ISSUES = [
    {
        "_type": "issue",
        "id": "bd-a1",
        "title": "Sign in",
        "description": "With OAuth",
        "status": "in_progress",
        "priority": 1,
        "issue_type": "feature",
        "assignee": "ann@example.com",
        "labels": ["auth", "日本"],
        "created_at": "2026-01-19T22:12:48.942352085Z",
        "updated_at": "2026-01-20T22:12:48Z",
        "dependencies": [
            {"issue_id": "bd-a1", "depends_on_id": "bd-b2", "type": "blocks", "created_by": "ann", "metadata": "{}"},
            {"issue_id": "bd-a1", "depends_on_id": "bd-c3", "type": "parent-child"},
        ],
        "comments": [{"id": 1, "author": "ann", "text": "soon", "created_at": "2026-01-19T22:12:49Z"}],
    },
    {
        "_type": "issue",
        "id": "bd-b2",
        "title": "Schema",
        "description": None,
        "status": "closed",
        "priority": 0,
        "issue_type": "task",
        "created_at": "2026-01-01T00:00:00Z",
        "closed_at": "2026-01-02T00:00:00Z",
        "close_reason": "done",
    },
    {"_type": "issue", "id": "bd-c3", "title": "Epic", "status": "open", "priority": 2, "issue_type": "epic"},
    {
        "_type": "issue",
        "id": "bd-d4",
        "title": "Last",
        "status": "open",
        "priority": 2,
        "issue_type": "task",
        "dependencies": [{"issue_id": "bd-d4", "depends_on_id": "bd-a1", "type": "blocks"}],
    },
]


def lines(issues: list[dict]) -> bytes:
    return "\n".join(json.dumps(issue, ensure_ascii=False) for issue in issues).encode()


async def brought(board: Board, content: bytes, *, apply: bool = True):
    issues, wrong = read_issues(content)
    return await import_issues(board, ME, "main", issues, wrong, apply=apply)


async def test_a_preview_changes_nothing(tmp_path: Path):
    async with opened(tmp_path) as board:
        plan = await brought(board, lines(ISSUES), apply=False)
        assert (plan.new, plan.known, plan.links, plan.skipped, plan.applied) == (4, 0, 2, (), False)
        assert await board.cards.list_cards() == []


async def test_issues_become_cards_that_start_nothing_by_themselves(tmp_path: Path):
    async with opened(tmp_path) as board:
        assert (await brought(board, lines(ISSUES))).new == 4
        cards = {card.key: card for card in await board.cards.whole("main")}
        assert {key: card.status for key, card in cards.items()} == {
            "beads:bd-a1": Status.TRIAGE,
            "beads:bd-b2": Status.DONE,
            "beads:bd-c3": Status.TRIAGE,
            "beads:bd-d4": Status.TRIAGE,
        }
        assert cards["beads:bd-d4"].parents_left == 1
        assert cards["beads:bd-a1"].parents_left == 0
        assert await board.runs.waiting("") == frozenset()
        again = await brought(board, lines(ISSUES))
        assert (again.new, again.known) == (0, 4)


async def test_what_came_in_goes_out_as_it_was(tmp_path: Path, full: bool):
    count = 10_000 if full else 60
    many = [
        {
            "_type": "issue",
            "id": f"bd-{number:05d}",
            "title": f"Issue {number}",
            "status": "open",
            "priority": number % 5,
            "dependencies": [
                {"issue_id": f"bd-{number:05d}", "depends_on_id": f"bd-{number // 2:05d}", "type": "blocks"}
            ],
        }
        for number in range(1, count)
    ]
    many.insert(0, {"_type": "issue", "id": "bd-00000", "title": "Root", "status": "open", "priority": 0})
    async with opened(tmp_path) as board:
        plan = await brought(board, lines([*ISSUES, *many]))
        assert (plan.new, plan.links) == (count + 4, count - 1 + 2)
        out = [json.loads(line) for line in (await exported(board, "main")).splitlines()]
        assert out == sorted([*ISSUES, *many], key=lambda issue: str(issue["id"]))


async def test_what_changed_here_is_what_differs(tmp_path: Path):
    async with opened(tmp_path) as board:
        await brought(board, lines(ISSUES))
        ids = {card.key.removeprefix("beads:"): card.id for card in await board.cards.whole("main")}
        await board.update(ME, ids["bd-c3"], title="Bigger epic", priority=3)
        await board.move(ME, ids["bd-a1"], Order(verb=Verb.START))
        await board.complete(ME, ids["bd-a1"], "Signed in.")
        await board.link(ME, ids["bd-a1"], ids["bd-d4"], remove=True)
        new = await made(board, "New", parents=(ids["bd-c3"],), hold=True)

        out = {line["id"]: line for line in map(json.loads, (await exported(board, "main")).splitlines())}

        assert out["bd-b2"] == ISSUES[1]
        assert out["bd-c3"] == {**ISSUES[2], "title": "Bigger epic", "priority": 3}
        first = out["bd-a1"]
        assert (first["status"], first["close_reason"], first["labels"]) == ("closed", "Signed in.", ["auth", "日本"])
        assert first["dependencies"] == ISSUES[0]["dependencies"]
        assert out["bd-d4"]["dependencies"] == []
        assert out[new.id]["status"] == "blocked"
        assert out[new.id]["dependencies"] == [{"issue_id": new.id, "depends_on_id": "bd-c3", "type": "blocks"}]


async def test_what_cannot_be_read_or_linked_is_named_and_the_rest_comes(tmp_path: Path):
    odd = [
        {"id": "bd-1", "title": "", "status": "open", "priority": -5},
        {"id": "bd-2", "title": "x" * 500, "status": "tombstone"},
        {"id": "bd-3", "title": "b", "dependencies": [{"depends_on_id": "bd-4", "type": "blocks"}]},
        {"id": "bd-4", "title": "c", "dependencies": [{"depends_on_id": "bd-3", "type": "blocks"}]},
        {"id": "bd-5", "title": "d", "dependencies": [{"depends_on_id": "bd-none", "type": "blocks"}]},
    ]
    content = b"\n".join([b"not json", lines(odd), b'{"title": 3}', b"", b"\xff"])
    async with opened(tmp_path) as board:
        plan = await brought(board, content)
        assert (plan.new, plan.links) == (4, 1)
        said = "\n".join(plan.skipped)
        for word in ("Line 1 is no issue", "Line 7", "Line 9", "bd-none, which is not there", "would be a circle"):
            assert word in said
        titles = {card.key: card.title for card in await board.cards.whole("main")}
        assert titles["beads:bd-1"] == "bd-1"
        with pytest.raises(HermesError, match="no board"):
            await import_issues(board, ME, "mian", [], [], apply=True)


async def test_an_import_is_one_commit_and_circles_and_doubles_are_said(tmp_path: Path):
    odd = [
        {"id": "c", "title": "x", "dependencies": [{"depends_on_id": "d"}, {"depends_on_id": "d"}]},
        {"id": "d", "title": "y", "dependencies": [{"depends_on_id": "c"}]},
        {"id": "k", "title": "x", "dependencies": [{"depends_on_id": "k"}, {"depends_on_id": "gone"}]},
        {"id": "c", "title": "again"},
    ]
    async with opened(tmp_path) as board:
        seen = await brought(board, b"\xef\xbb\xbf" + lines(odd), apply=False)
        plan = await brought(board, lines(odd))
        assert (plan.new, plan.known, plan.links) == (seen.new, seen.known, seen.links) == (3, 0, 1)
        assert plan.skipped == seen.skipped
        assert [each.partition(":")[0] for each in plan.skipped] == [
            "c is there twice",
            "k waits for gone, which is not there.",
            "d does not wait for c",
            "k does not wait for k",
        ]
        changes = await board.store.read(lambda tx: tx.rows("SELECT kind FROM card_event"))
        assert changes == [("created",)] * 3


async def test_a_new_issue_does_not_wait_for_a_card_that_was_cancelled_here(tmp_path: Path):
    async with opened(tmp_path) as board:
        await brought(board, lines(ISSUES))
        ids = {card.key.removeprefix("beads:"): card.id for card in await board.cards.whole("main")}
        await board.move(ME, ids["bd-c3"], Order(verb=Verb.CANCEL))
        late = [{"id": f"bd-z{n}", "title": "L", "dependencies": [{"depends_on_id": f"bd-{n}"}]} for n in ("c3", "d4")]
        plan = await brought(board, lines([*ISSUES, *late]))
        assert (plan.new, plan.links) == (2, 1)
        assert plan.skipped == (f"bd-zc3 does not wait for bd-c3: {ids['bd-c3']} is cancelled.",)
