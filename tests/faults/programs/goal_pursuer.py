"""A serving process that pursues one goal: `python goal_pursuer.py HOME FOLDER TURNS KILL`; it kills itself with the
commit of that number (0: never), and ends with the goal."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.settings import SERVED
from hermes_agent.app.work import GOALS
from hermes_agent.app.work.goals import whose_goals
from hermes_agent.core.chat import Conversation
from hermes_agent.host.paths import Home
from hermes_agent.store.work.goals import PURSUED_STATES, Criterion, Kind
from hermes_agent.work.goals.desk import Wish

WHERE = Conversation(platform="cli", chat_kind="folder", chat="goal")
COMMAND = Criterion(kind=Kind.COMMAND, text="date +%s%N >> log; exit 1")


async def main(root: Path, folder: str, turns: int, kill: int) -> None:
    async with open_system(Home(root=root, base=root), Options(queue=SERVED, own_only=False)) as system:
        write, commits = system.store.engine.write, 0

        async def counted(change, *, durable: bool = True):
            nonlocal commits
            done = await write(change, durable=durable)
            commits += 1
            if commits == kill:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        system.store.engine.write = counted  # type: ignore[method-assign]  # a program that dies at a place of its own
        if not await system.store.goals.list(ended=True):
            record = await system.hermes.open_session(WHERE, system.owner, workspace=folder)
            work = system.snapshots.now.needs.made(GOALS)
            wish = Wish(text="Reach it.", criteria=(COMMAND,), turns=turns)
            await work.desk.create(whose_goals(system.standings, system.owner.key), wish, record, folder)
        while (goal := (await system.store.goals.list(ended=True))[0]).state in PURSUED_STATES or goal.untold:
            await asyncio.sleep(0.02)
        print(commits, flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
