"""A long run that is killed with `kill -9` at 200 random moments and taken up again each time."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from bench.figures import Figure
from bench.killing import Work, wrong_after
from bench.long_run import REPORT, LongRun
from hermes_agent.testing.model_servers import openai_model, serving_in_thread

KILLS = 200
SEED = 7


def measure() -> list[Figure]:
    """How many runs were not as they should be after their kills, and how many kills there were."""
    script: list[LongRun] = []
    chance, wrong, runs = random.Random(SEED), 0, 0
    with (
        tempfile.TemporaryDirectory() as folder,
        serving_in_thread(openai_model(lambda heard: script[0](heard))) as server,
    ):
        work = Work(Path(folder), server.url)
        script.append(work.prepare())
        assert work.whole() == REPORT
        expected = work.transcript()
        while work.kills < KILLS:
            work.prepare()
            runs += 1
            reply = work.killed(chance, kills=min(12, KILLS - work.kills), shortest=0.3, longest=1.2)
            wrong += reply != REPORT or wrong_after(work, script[0], expected) != []
    return [
        Figure(name="runs that were not as without kills", value=wrong, unit=f"of {runs}", limit=0),
        Figure(name="kills", value=work.kills, unit="kills"),
    ]
