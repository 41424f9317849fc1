"""Report of a curator pass, `run.json` and `REPORT.md`: what changed is read from the version ledger and the files,
not from what the model says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from hermes_agent.core.clock import moment
from hermes_agent.core.errors import HermesError
from hermes_agent.host.paths import PRIVATE_FOLDER, write_private
from hermes_agent.learning.curator.plan import REPORT, RUN, Changed, Denied, Move, Plan, State, Step
from hermes_agent.learning.curator.tools import grade
from hermes_agent.skills.depot import whole
from hermes_agent.skills.versions import diff_of
from hermes_agent.store.versions import Version

LONGEST_DIFF = 200
"""Lines of one change that REPORT.md shows."""


class Graded(msgspec.Struct, frozen=True, kw_only=True):
    """A grade that the curator's model gave a skill in the reported pass."""

    grade: str
    points: dict[str, int]


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """Report of a curator pass. Times are Unix seconds; `looks`: a dry run; `checked`: number of past queries
    checked; `lost`: skills that a past query no longer finds even after restoring; `said`: the model's last text,
    for information alone."""

    id: str
    job: str
    looks: bool
    began: float
    ended: float
    model: str = ""
    calls: int = 0
    input: int = 0
    output: int = 0
    cost: float | None = 0.0
    moves: tuple[Move, ...] = ()
    changes: tuple[Changed, ...] = ()
    grades: dict[str, Graded] = {}
    groups: tuple[tuple[str, ...], ...] = ()
    seen: tuple[tuple[str, ...], ...] = ()
    refused: tuple[Denied, ...] = ()
    checked: int = 0
    lost: tuple[str, ...] = ()
    failed: str = ""
    said: str = ""
    rolled_back: float = 0.0

    @property
    def touched(self) -> list[str]:
        """The changed skills by name."""
        return sorted({name for each in self.changes if each.versions for name in (each.name, *each.absorbs)})

    @property
    def text(self) -> str:
        """The report as text."""
        return markdown(self)

    @property
    def summary(self) -> str:
        """A few lines about the pass."""
        lines = [summary(self)]
        lines += ["This pass only reported: nothing was changed."] if self.looks else []
        lines += [f"It ended early: {self.failed}"] if self.failed else []
        return "\n".join(lines)


def run_of(name: str, plan: Plan, changes: Iterable[Changed], ended: float) -> Run:
    """The report of a pass, as far as the plan determines it."""
    return Run(
        id=name,
        job=plan.job,
        looks=plan.looks,
        began=plan.at,
        ended=ended,
        model=plan.model,
        moves=plan.moves,
        changes=tuple(changes),
        grades={name: Graded(grade=grade(each.points), points=each.points) for name, each in plan.ratings.items()},
        groups=plan.groups,
        seen=plan.seen,
        refused=plan.denied,
        checked=len(plan.past),
        failed=plan.failed,
        said=plan.said,
    )


def changed(came: Changed, versions: Iterable[Version]) -> Changed:
    """The outcome of a step according to the ledger. Without a version nothing was done."""
    made = sorted(versions, key=lambda version: version.id)
    state: State = "skipped" if came.state == "done" and not made else came.state
    diff = "".join(diff_of(each.change.item, each.change.before, each.change.after) for each in made)
    return msgspec.structs.replace(came, state=state, versions=tuple(each.id for each in made), diff=diff)


def would(step: Step, before: Mapping[str, bytes | None]) -> Changed:
    """A step of a read-only pass; `before` are the current files by `name/file`."""
    files = [(f"{step.name}/{file}", content) for file, content in step.changes.items()]
    return step.came("would", diff="".join(diff_of(file, before.get(file), content) for file, content in files))


def keep(run: Run, folder: Path) -> None:
    """Write both files. Blocks."""
    folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    write_private(folder / REPORT, markdown(run).encode())
    write_private(folder / RUN, msgspec.json.format(msgspec.json.encode(run)))


def kept(folder: Path) -> Run | None:
    """The report of one pass; None where it did not finish. Blocks."""
    return whole(folder / RUN, Run)


def all_kept(folder: Path) -> list[Run]:
    """The finished passes, the newest first. Blocks."""
    found = sorted((each for each in folder.iterdir() if each.is_dir()), reverse=True) if folder.is_dir() else []
    return [run for run in map(kept, found) if run is not None]


def one_kept(folder: Path, name: str) -> Run:
    """The pass of that name; the newest without one. Blocks. Raises `HermesError`."""
    runs = all_kept(folder)
    run = next((each for each in runs if name in ("", each.id)), None)
    if run is None:
        there = f"`hermes curator report` knows {', '.join(each.id for each in runs[:5])}" if runs else "none ended yet"
        raise HermesError(f"There is no pass `{name}` ({there})." if name else "No pass has ended yet.")
    return run


WORDS = {
    "done": "done",
    "skipped": "not done",
    "waits": "needs your approval",
    "back": "restored",
    "would": "would be done",
}
KINDS = {"unused": "Archived, unused", "patch": "Repaired", "join": "Merged"}


def markdown(run: Run) -> str:
    """The report as Markdown."""
    head = f"# Curator, {moment(run.began)}"
    only = ["This pass only reported: nothing was changed."] if run.looks else []
    rolled = [f"Rolled back {moment(run.rolled_back)}."] if run.rolled_back else []
    failed = [f"It ended early: {run.failed}"] if run.failed else []
    parts = [head, *only, *rolled, *failed, summary(run), _spent(run)]
    parts += _section(
        "Age", [f"- {each.name}: {each.was} -> {each.now} ({each.days} days unused)" for each in run.moves]
    )
    parts += [_change(each) for each in run.changes]
    graded = [f"- {name}: {each.grade} ({_points(each.points)})" for name, each in sorted(run.grades.items())]
    parts += _section("Grades", graded)
    parts += _section("Overlapping by their words", [f"- {', '.join(group)}" for group in run.groups])
    parts += _section("Overlapping, as reviews saw", [f"- {', '.join(group)}" for group in run.seen])
    parts += _section("Refused", [f"- {each.call}: {each.reason}" for each in run.refused])
    parts += _section("Lost", [f"- a past query no longer finds `{name}`" for name in run.lost])
    if run.touched and not run.rolled_back:
        parts.append(f"Undo it: `hermes curator rollback {run.id}` (or one change: `hermes learn undo VERSION`).")
    return "\n\n".join(filter(None, parts)) + "\n"


def summary(run: Run) -> str:
    """One line: numbers of changes, proposals and refusals."""
    states = [each.state for each in run.changes]
    counts = {word: states.count(state) for state, word in WORDS.items() if state in states}
    told = [f"{count} {word}" for word, count in counts.items()] or ["nothing to change"]
    more = [f"{len(run.refused)} calls refused"] if run.refused else []
    checked = f"{run.checked} past queries checked, {len(run.lost)} lost"
    return "; ".join([", ".join(told), *more, checked]) + "."


def _spent(run: Run) -> str:
    if not run.calls:
        return "No model was asked."
    cost = "price unknown" if run.cost is None else f"US dollars {run.cost:.4f}"
    return f"{run.model}: {run.calls} calls, {run.input:,} tokens in, {run.output:,} out, {cost}."


def _change(each: Changed) -> str:
    names = f" with {', '.join(f'`{name}`' for name in each.absorbs)}" if each.absorbs else ""
    numbers = f" (versions {', '.join(map(str, each.versions))})" if each.versions else ""
    waits = f" ({', '.join(each.waits)})" if each.waits else ""
    lines = [f"## {KINDS[each.kind]}: `{each.name}`{names}", "", f"{WORDS[each.state]}{numbers}{waits}. {each.reason}"]
    lines += [f"Given reason: {each.why}"] if each.why else []
    diff = each.diff.splitlines()
    if diff:
        cut = [f"... {len(diff) - LONGEST_DIFF} lines more: run.json"] if len(diff) > LONGEST_DIFF else []
        lines += ["", *(f"    {line}" for line in [*diff[:LONGEST_DIFF], *cut])]
    return "\n".join(line.rstrip() for line in lines)


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [f"## {title}", "\n".join(lines)] if lines else []


def _points(points: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {each}" for name, each in points.items())
