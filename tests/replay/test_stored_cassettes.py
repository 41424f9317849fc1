"""Recordings that an earlier program made (format 1): they are read, and play as they did then."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.agent.prompt import sections_of
from hermes_agent.app.replay import played, verdict_of
from hermes_agent.core.messages import ModelRequest
from hermes_agent.core.section import freeze
from hermes_agent.host.paths import Home
from hermes_agent.replay.cassette import Cassette, Questions, digest, read_cassette
from hermes_agent.replay.lines import KINDS, Asked, PrefixShown, RunBegun, plain_of
from hermes_agent.replay.replayer import Replay, player_of

FILES = sorted((Path(__file__).parents[1] / "data/cassettes").glob("*.jsonl"))
EVERY = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def of_today(cassette: Cassette) -> Cassette:
    """The same with the prompt that the program makes today of what was found out then: that is not what is asked."""
    lines = list(cassette.lines)
    for track, seen in cassette.environment.items():
        prefix = freeze(sections_of(seen.facts, seen.tools), seen.tools)
        id_ = digest([prefix.system, prefix.tools], str)
        lines = [
            replace(line, prefix=id_) if isinstance(line, Asked) and line.track == track else line for line in lines
        ]
        lines.append(PrefixShown(id=id_, prefix=prefix))
    return Cassette(header=cassette.header, lines=tuple(lines))


def test_they_hold_each_kind_of_line_and_each_is_read_as_it_stands():
    rows = [json.loads(row) for file in FILES for row in file.read_text().splitlines()]
    read = [line for file in FILES for line in (read_cassette(file).header, *read_cassette(file).lines)]

    assert {row["kind"] for row in rows} == KINDS - {"trust"}  # A later program writes it.
    for row, line in zip(rows, read, strict=True):
        now = json.loads(json.dumps(plain_of(line)))
        assert _within(now, row) == row  # What later versions add is allowed.


@EVERY
def test_each_question_is_the_recorded_one_by_today_s_digests(file: Path):
    cassette = read_cassette(file)
    for asked, _ in cassette.steps:
        request = ModelRequest(
            call_id="c",
            session="s",
            run="r",
            turn=asked.turn,
            purpose=asked.purpose,
            prefix=cassette.prefixes[asked.prefix],
            messages=[cassette.messages[each] for each in cassette.shown(asked.n)],
            effort=asked.effort,
            use_tools=asked.use_tools,
            max_output=asked.max_output,
        )
        assert Questions(cassette, str).difference(request, asked) == ""


@EVERY
async def test_the_whole_of_it_is_played_as_it_was(file: Path, tmp_path: Path):
    home = Home(root=tmp_path, base=tmp_path)
    cassette = of_today(read_cassette(file))

    async with played(home, player_of(cassette, Replay(driven=True))) as sessions:
        verdicts = [verdict_of(cassette, each) for each in sessions]

    assert [verdict.differences for verdict in verdicts] == [()] * len(verdicts)
    begun = sum(isinstance(line, RunBegun) for line in cassette.lines)
    assert sum(verdict.runs for verdict in verdicts) == begun


def _within(now: object, row: object) -> object:
    """What of a value the older one has too."""
    if isinstance(now, dict) and isinstance(row, dict):
        return {name: _within(now.get(name), row[name]) for name in row}
    if isinstance(now, list) and isinstance(row, list) and len(now) == len(row):
        return [_within(*pair) for pair in zip(now, row, strict=True)]
    return now
