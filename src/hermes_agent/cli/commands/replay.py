"""Subcommand `hermes replay FILE`: replays a recording and reports differences."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import click

from hermes_agent.app.replay import Played, Verdict, played, steps_of, verdict_of
from hermes_agent.cli.exits import Exit
from hermes_agent.cli.output import columns, shortened, show
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.shown import plural
from hermes_agent.host.paths import Home
from hermes_agent.replay.cassette import Cassette, read_cassette
from hermes_agent.replay.replayer import Replay, player_of

WORDS = 60


@click.command(short_help="Replay a recording, and show what differs.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--model", default="", metavar="MODEL", help="Ask this model instead; tools answer from the recording.")
@click.option(
    "--from",
    "step",
    default=None,
    type=click.IntRange(min=1),
    metavar="STEP",
    help="From this step on, use the real model and tools.",
)
@pass_surface
def replay(surface: Surface, file: Path, model: str, step: int | None) -> int:
    """Replay a recording with its recorded answers. No model is asked, no tool runs and no key is needed, unless
    --model or --from say so. The exit code is 1 if something differs, or if a real request failed."""
    cassette = read_cassette(file)
    how = Replay(model=model, live_from=step, driven=True)
    sessions = asyncio.run(_play(surface, cassette, how))
    steps, verdicts = steps_of(cassette), [verdict_of(cassette, each) for each in sessions]
    facts = {"file": str(file), "steps": steps, "sessions": verdicts, "notes": cassette.notes}
    good = (not each.failed if how.is_live else each.same for each in verdicts)
    words = "\n".join((STEPS(steps), *(_report(each, live=how.is_live) for each in verdicts)))
    return show(facts, words, notes=cassette.notes, code=Exit.OK if all(good) else Exit.FAILED)


async def _play(surface: Surface, cassette: Cassette, how: Replay) -> tuple[Played, ...]:
    """Replay the recording: in the person's home if it is live, otherwise in a temporary one."""
    if how.is_live:
        async with played(surface.home.ensure(), player_of(cassette, how)) as sessions:
            return sessions
    with tempfile.TemporaryDirectory(prefix="hermes-replay-") as folder:
        home = Home(root=Path(folder) / "home", base=Path(folder) / "home")
        async with played(home, player_of(cassette, how)) as sessions:
            return sessions


STEPS = columns(
    (0, 4),
    STEP="step",
    SESSION="session",
    PURPOSE="purpose",
    MODEL="model",
    SECONDS=lambda step: f"{step.seconds:.1f}",
    WHAT_CAME=lambda step: shortened(step.said, WORDS),
)


def _report(verdict: Verdict, *, live: bool) -> str:
    played = f"Now: {verdict.ended}" if live else "Played as recorded." if verdict.same else ""
    differences = (f"Differs: {difference}" for difference in verdict.differences)
    return "\n".join(("", f"{verdict.session}: {figures(verdict)}.", *filter(None, (played, *differences))))


def figures(verdict: Verdict) -> str:
    """Counts of what was replayed, as text."""
    counted = ((verdict.runs, "run"), (verdict.steps, "step"), (verdict.calls, "tool call"))
    return ", ".join(plural(count, noun) for count, noun in counted)
