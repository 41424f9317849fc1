"""Runs every gate and test, fastest first, and says at the end what failed and what mends it."""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import machine
import mutants
import pythons
import wall

PYTHON = [sys.executable, "-I"]
RUFF = str(Path(sys.prefix, "bin", "ruff"))
LINT_IMPORTS = "from importlinter.cli import lint_imports_command; lint_imports_command()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A command that fails when something is wrong, and what a person does about it."""

    title: str
    command: Sequence[str]
    mend: str
    aloud: bool = False  # its output is shown as it comes, not only where it failed
    alone: Sequence[str] = ()  # what is run instead where it failed, and decides
    limit: wall.Wall = field(default_factory=wall.Wall)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    gate: Gate
    code: int
    seconds: float
    output: list[str]
    stood: bool = False  # it was ended because it stood still
    only_alone: list[str] = field(default_factory=list)  # the tests that failed beside others and passed then


GATES = (
    Gate(title="format", command=[RUFF, "format", "--check", "--quiet", "--diff"], mend="./check --fix"),
    Gate(title="lint", command=[RUFF, "check", "--quiet"], mend="./check --fix, then the rest as each line says"),
    Gate(
        title="imports",
        command=[*PYTHON, "-c", LINT_IMPORTS, "--no-logo"],
        mend="move the code to a layer that may import it: docs/architecture.md, 'Who may import whom'",
    ),
    Gate(title="types", command=[*PYTHON, "-m", "mypy"], mend="say what each value is where mypy points"),
)
COMPILE = [*PYTHON, "-m", "pytest", "--collect-only", "--quiet", "tests"]
"""Compiles the tests beside the gates, so that not each of their processes does."""
REPEAT = "-m pytest FILE::TEST, with the --randomly-seed that pytest printed"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
AGAIN = ("--last-failed", "--last-failed-no-failures=none")
MEASURED = Path(__file__).with_name("coverage.toml")
"""What every run measures: core, agent and store, during the tests that reach them (`GROUND` in tests/conftest.py)."""
RAISE = "test the lines named above; after ./check --full, .venv-dev/bin/python .ci/ratchet.py --raise records them"


def main() -> int:
    parser = argparse.ArgumentParser(prog="./check", description="Run every gate and test.")
    parser.add_argument("--fast", action="store_true", help="leave out the slow tests and the coverage")
    parser.add_argument("--full", action="store_true", help="measure the coverage of all, run every other Python")
    parser.add_argument(
        "--mutants", action="store_true", help="change the source to see what no test notices; takes hours"
    )
    parser.add_argument("--fix", action="store_true", help="let ruff format and repair first")
    asked, rest = parser.parse_known_args()
    if asked.mutants:
        return mutants.main(rest)
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if asked.fix:
        subprocess.run([RUFF, "check", "--quiet", "--fix", "--exit-zero"], check=False)
        subprocess.run([RUFF, "format", "--quiet"], check=False)
    can_run_all = machine.provide()
    outcomes: list[Outcome] = []
    if not asked.full:
        os.environ["COVERAGE_RCFILE"] = str(MEASURED)
    others, skipped = tests_elsewhere() if asked.full else ([], [])
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    compiling = subprocess.Popen(COMPILE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for gate in (*GATES, *tests(fast=asked.fast, covered=can_run_all and not asked.fast), *others):
        if gate.aloud:
            compiling.wait()
        if not any(outcome.stood for outcome in outcomes):  # What was cut short covered next to nothing.
            outcomes.append(run(gate))
    return report(outcomes, skipped)


def tests(*, fast: bool, covered: bool) -> list[Gate]:
    """The tests, and the coverage where every one of them can run."""
    if not covered:
        return [suite("tests", PYTHON, fast=fast)]
    coverage = Gate(title="coverage", command=[*PYTHON, ".ci/ratchet.py"], mend=RAISE)
    return [suite("tests", [*PYTHON, "-m", "coverage", "run"]), coverage]


def tests_elsewhere() -> tuple[list[Gate], list[str]]:
    """The tests under each other Python; a line for each one that this machine does not have."""
    gates, skipped = [], []
    for version in pythons.others():
        try:
            gates.append(suite(f"Python {version}", [str(pythons.provide(version)), "-I"]))
        except pythons.NoPython as reason:
            skipped.append(f"skipped: the tests under Python {version}: {reason}")
    return gates, skipped


def suite(title: str, python: Sequence[str], *, fast: bool = False) -> Gate:
    """What failed beside others, on cores that they share, is run once more alone: many tests are about seconds."""
    workers = 5 + (os.cpu_count() or 1)  # two thirds of the time of a test is waiting
    together = [*python, "-m", "pytest", f"--numprocesses={workers}", "--dist=worksteal"]
    together += ["-m", "not slow"] if fast else []
    together += ["--color=yes"] if sys.stdout.isatty() else []
    alone = [*python, "-m", "pytest", *AGAIN]
    return Gate(title=title, command=together, mend=f"{python[0]} {REPEAT}", aloud=True, alone=alone)


def run(gate: Gate) -> Outcome:
    outcome = once(gate)
    if outcome.code and gate.alone and not outcome.stood:
        failed = failures(outcome)
        alone = once(replace(gate, title="alone", command=gate.alone))
        seconds = outcome.seconds + alone.seconds
        outcome = replace(alone, seconds=seconds, only_alone=sorted(failed - failures(alone)))
    return outcome


def failures(outcome: Outcome) -> set[str]:
    """The tests that pytest's summary names as failed, with colours or without."""
    plain = (COLOUR.sub("", line) for line in outcome.output)
    return {line.split()[1] for line in plain if line.startswith("FAILED tests")}


def once(gate: Gate) -> Outcome:
    began = time.monotonic()
    print(f"{gate.title:12}", end="\n" if gate.aloud else "", flush=True)
    output, stood = "", ""
    with tempfile.TemporaryDirectory() as stacks, started(gate.command, stacks) as process:
        try:
            for piece in wall.said(process, gate.limit, Path(stacks)):
                output += piece
                print(piece if gate.aloud else "", end="", flush=True)
        except wall.StoodStill as still:
            stood = str(still)
            print(stood, flush=True)
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGINT)
            raise
    seconds = time.monotonic() - began
    print(f"{'FAILED' if process.returncode else 'ok':6} {seconds:6.1f} s", flush=True)
    if process.returncode and not gate.aloud:
        print(output, flush=True)
    lines = output.splitlines(keepends=True)
    return Outcome(gate=gate, code=process.returncode, seconds=seconds, output=lines, stood=bool(stood))


def started(command: Sequence[str], stacks: str) -> subprocess.Popen[bytes]:
    """A gate's process, in a group of its own: where it stands still, all of it is ended."""
    variables = {**os.environ, wall.FOLDER: stacks}
    return subprocess.Popen(command, env=variables, process_group=0, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def report(outcomes: Sequence[Outcome], skipped: Sequence[str] = ()) -> int:
    """One line for each gate that failed and each that was skipped; pytest's own summaries are the last lines."""
    failed = [outcome for outcome in outcomes if outcome.code]
    print("-" * min(shutil.get_terminal_size().columns, 120))
    for name in (name for outcome in outcomes for name in outcome.only_alone):
        print(f"passed only alone: {name}")
    for outcome in failed:
        for name in sorted(failures(outcome)):
            print(f"failed: {name}")
        stood = "it stood still; above is where. " if outcome.stood else ""
        print(f"FAILED {outcome.gate.title}: {stood}{outcome.gate.mend}")
    seconds = sum(outcome.seconds for outcome in outcomes)
    print(f"{len(outcomes) - len(failed)} of {len(outcomes)} gates passed in {seconds:.0f} s")
    print(*skipped, *(each.output[-1].strip() for each in outcomes if each.gate.aloud and each.output), sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
