"""Work part of the demo: a goal with two agents, killed in the middle; a card with a check; a job that comes due."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes_agent.app.demo import EXTEND, REPAIR, SLOW_COMMAND, SLOW_LOG, Stage, demo_stage, work_of
from hermes_agent.cli.demo.child import hermes
from hermes_agent.cli.demo.show import WALKED_ONCE, Check, all_hold, heading, run_command
from hermes_agent.cli.output import announce

GOAL, CARD, JOB = "Repair the project and extend it.", "Write the stock list.", "Say how many items there are."
CRITERIA = ("python3 -m unittest", f"grep -c finished {SLOW_LOG}")
VALIDATOR = "test -s stock.txt"
WHEN = "in 3s"
"""When the job is due: counted by the command that makes it, however late that begins."""
PATIENCE, PAUSE = 30.0, 0.25


async def demonstrate_work(folder: Path, variables: Mapping[str, str]) -> bool:
    """Run goal, card and job in an empty folder; True if every check holds."""
    announce(
        "The model of this demonstration is scripted. Agents, goals, board and schedule are the program's own.\n"
        f"Folder: {folder}"
    )
    async with demo_stage(folder) as stage:
        words = [word for each in CRITERIA for word in ("--command", each)]
        heading(
            f'1. hermes goals add "{GOAL}" --command "{CRITERIA[0]}" --command "{CRITERIA[1]}"\n'
            "     The model gives two agents their parts. One of them begins a slow command."
        )
        await run_command(stage, variables, "goals", "add", GOAL, *words, kill_in=stage.project / SLOW_LOG)
        announce(f"     KILLED with SIGKILL, all at once, in the middle of `{SLOW_COMMAND}`.")
        heading("   hermes status")
        await run_command(stage, variables, "status")
        heading("   hermes goals resume")
        goal = _first(await run_command(stage, variables, "goals", "list", "--json", quiet=True))
        resumed = await run_command(stage, variables, "goals", "resume", goal)
        heading("2. hermes worker, and beside it a card with a check, and a job that is due in three seconds")
        async with hermes("worker", home=stage.home, folder=stage.project, variables=variables):
            where = ("--workspace", f"dir:{stage.project}", "--check", f"command:{VALIDATOR}")
            await run_command(stage, variables, "kanban", "create", CARD, *where)
            await run_command(
                stage, variables, "cron", "create", WHEN, JOB, "--folder", str(stage.project), "--deliver", "local"
            )
            card = await until_over(stage, variables)
            await run_command(stage, variables, "kanban", "runs", card)
            await run_command(stage, variables, "cron", "list")
        agents, instants = await work_of(stage)
        heading("   The result of the job:")
        found = await asyncio.to_thread(results, stage)
        announce("\n".join(f"     {line}" for line in found.splitlines()))
    goals = sorted(each.goal for each in agents)
    walked = (stage.project / SLOW_LOG).read_text("utf-8") if (stage.project / SLOW_LOG).exists() else ""
    checks = [
        Check(claim="the goal is done, by receipts of its commands", holds=any(" done " in line for line in resumed)),
        Check(claim="two agents were started, none twice", holds=goals == [EXTEND, REPAIR]),
        Check(claim="both have reported after the kill", holds=all(each.report for each in agents)),
        Check(
            claim=f"the command that ran when all was killed (`{SLOW_COMMAND}`) ran once", holds=walked == WALKED_ONCE
        ),
        Check(claim="the card is done, with the receipt of its check", holds=bool(card)),
        Check(claim="the job ran once, when it was due", holds=[each.state for each in instants] == ["ran"]),
        Check(claim="its result says how many items there are", holds="5 items" in found),
    ]
    return all_hold(checks, ", in the files and in the database")


async def until_over(stage: Stage, variables: Mapping[str, str]) -> str:
    """Wait until card and job are over; the card's id, empty where it is not done in time."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = await run_command(stage, variables, "kanban", "list", "--json", quiet=True)
            card = json.loads("\n".join(found))["cards"][0]
            _, instants = await work_of(stage)
            if card["status"] == "done" and instants and all(each.ended for each in instants):
                return str(card["id"])
            await asyncio.sleep(PAUSE)


def results(stage: Stage) -> str:
    """What the job wrote."""
    return "\n".join(path.read_text("utf-8") for path in sorted((stage.home.root / "cron").rglob("*.md")))


def _first(lines: Sequence[str]) -> str:
    return str(json.loads("\n".join(lines))[0]["id"])
