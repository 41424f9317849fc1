"""Agents with a git worktree of their own."""

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.core.errors import HermesError
from hermes_agent.providers.demo.script import Call, Heard, Piece, Say
from hermes_agent.testing.scripted import Script
from hermes_agent.work.delegation.report import REMOVED
from tests.app.place import PLACE, Place, place, spoken

GOALS = ("one", "two", "none", "four")
MOST = 10
"""Tasks of one call."""


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=x", "-c", "user.email=x@y")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def repository(folder: Path) -> Path:
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("before\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def editing(goals: Sequence[str]) -> Script:
    """Each agent but those without a goal writes it into the same file; a call has so many agents at most."""

    def script(heard: Heard) -> Piece:
        if "You work for another agent" not in heard.system:
            tasks = [{"goal": goal} for goal in goals[spoken(heard) * MOST :][:MOST]]
            return Call("delegate_task", {"tasks": tasks, "isolation": "worktree"}) if tasks else Say("Done.")
        goal = heard.messages[0].text.partition("Your goal: ")[2].split()[0]
        if spoken(heard) or goal.startswith("none"):
            return Say("Written.")
        return Call("terminal", {"command": f"echo {goal} > a.txt"})

    return script


async def reports_of(here: Place) -> dict[str, str]:
    return {child.goal: child.report for child in await here.runtime.store.children.of(here.record.id)}


@pytest.mark.timeout(240)
async def test_agents_edit_the_same_file_side_by_side_and_lose_nothing(tmp_path, full):
    work = repository(tmp_path / "work")
    goals = [*GOALS, *(f"g{number}" for number in range(16 if full else 0))]
    async with place(tmp_path, editing(goals), more=f"delegation: {{max_children: {MOST}}}\n") as here:
        await here.say("Go")
        children = await here.runtime.store.children.of(here.record.id)
        reports = await reports_of(here)

        gone = next(child for child in children if child.goal == "none")
        with pytest.raises(HermesError, match="worktree is gone"):
            await here.text(f"/agents say {gone.session} Go on")

    written = {child.goal: Path(child.folder, "a.txt") for child in children}
    assert [child.outcome for child in children] == ["answered"] * len(goals)
    assert (work / "a.txt").read_text() == "before\n"
    assert [written[goal].read_text() for goal in goals if goal != "none"] == [
        f"{goal}\n" for goal in goals if goal != "none"
    ]
    assert not written["none"].exists()
    assert REMOVED in reports["none"]
    assert "1 insertion" in reports["one"]
    branches = git(work, "branch", "--format=%(refname:short)").split()
    kept = {child.branch for child in children if child.goal != "none"}
    assert {branch for branch in branches if branch.startswith("hermes/")} == kept
    assert git(work, "status", "--porcelain") == ""
    git(work, "fsck")


async def test_an_agent_of_a_folder_in_a_repository_works_in_the_same_folder_of_its_worktree(tmp_path):
    repository(tmp_path / "all")
    work = tmp_path / "all" / "it's a" / "part"
    work.mkdir(parents=True)
    (work / "a.txt").write_text("before\n")
    git(tmp_path / "all", "add", ".")
    git(tmp_path / "all", "commit", "-q", "-m", "part")
    async with place(tmp_path, editing(["one", "none"]), more="terminal:\n  jail: none\n") as here:
        here.record = await here.runtime.hermes.open_session(
            replace(PLACE, chat="part"), here.runtime.owner, workspace=str(work)
        )
        await here.say("Go")
        one, none = await here.runtime.store.children.of(here.record.id)

    written = [Path(one.folder, "a.txt"), work / "a.txt"]
    assert one.folder.endswith("/it's a/part")
    assert [file.read_text() for file in written] == ["one\n", "before\n"]
    assert "part/a.txt" in one.report
    assert REMOVED in none.report


@pytest.mark.parametrize("how", ["bare", "empty", "rebasing"])
async def test_a_repository_without_a_commit_at_rest_is_refused_and_nothing_is_made(tmp_path, how):
    work = tmp_path / "work"
    if how == "rebasing":
        repository(work)
        (work / ".git" / "rebase-merge").mkdir()
    else:
        work.mkdir()
        git(work, "init", "-q", *(["--bare"] if how == "bare" else []))
    async with place(tmp_path, editing(GOALS)) as here:
        await here.say("Go")
        told = here.server.asked[-1].messages[-1].parts[-1].text

        assert "needs a git repository" in told
        assert await here.runtime.store.children.of(here.record.id) == []
        assert not (work / ".hermes" / "worktrees").exists()
