"""Changes the source in one place at a time and names the changes that no test notices.

`mutmut` makes the changes (https://mutmut.readthedocs.io) in a copy of the checkout and runs the tests that reach each
one. All changes of a package take hours: a run draws some of them by a seed that it prints.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLAN = ".ci/mutants.toml"
UNNOTICED = {0: "survived", 33: "no test reaches it"}
"""Exit codes of `mutmut` for a change that nobody notices; every other one is a failure or a time limit."""
MUTMUT = [sys.executable, "-m", "mutmut"]
NONE = "no.such.change"


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Returns 1 where a package of this checkout falls short of its floor in `.ci/mutants.toml`."""
    parser = argparse.ArgumentParser(prog="./check --mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="draws the changes")
    parser.add_argument("--most", type=int, default=150, help="changes of each package (default 150)")
    parser.add_argument("packages", nargs="*", help="default: each of .ci/mutants.toml")
    asked = parser.parse_args(arguments)
    plan = tomllib.loads((root / PLAN).read_text())
    print(f"seed {asked.seed}", flush=True)
    short = [
        name
        for name in asked.packages or plan
        if score(root, name, plan[name]["tests"], asked.seed, asked.most) < plan[name]["noticed"]
    ]
    print(f"Fewer changes are noticed than {PLAN} asks for: {', '.join(short)}." if short else "All as asked.")
    return bool(short)


def score(root: Path, package: str, tests: Sequence[str], seed: int, most: int) -> float:
    """Per cent of the drawn changes that a test notices; prints each of the others with its difference."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder)
        copied(root, copy, package, tests)
        mutmut(copy, "run", NONE)
        names = sorted(name for name, _ in codes(copy))
        drawn = sorted(random.Random(seed).sample(names, min(most, len(names))))
        mutmut(copy, "run", *drawn)
        found = {name: code for name, code in codes(copy) if name in set(drawn)}
        left = {name: UNNOTICED[code] for name, code in found.items() if code in UNNOTICED}
        for name, why in sorted(left.items()):
            print(f"\n{name}: {why}\n{mutmut(copy, 'show', name)}", flush=True)
    noticed = 100 * (1 - len(left) / len(drawn))
    print(f"{package}: {noticed:.0f} % of {len(drawn)} changes noticed, of {len(names)} possible", flush=True)
    return noticed


def copied(root: Path, copy: Path, package: str, tests: Sequence[str]) -> None:
    """A copy of what git tracks, and of new files, that says what is to be changed there."""
    command = ["git", "ls-files", "-coz", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (root / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, copy / name, follow_symlinks=False)
    plan = {"source_paths": [f"src/hermes_agent/{package}"], "pytest_add_cli_args_test_selection": list(tests)}
    plan["also_copy"] = [name for name in ("src", "tests", ".ci", "docs") if (root / name).exists()]
    lines = [f"{key} = {json.dumps(value)}" for key, value in plan.items()]
    with (copy / "pyproject.toml").open("a") as file:
        file.write("\n".join(["", "[tool.mutmut]", *lines, ""]))


def mutmut(copy: Path, *arguments: str) -> str:
    """What it says. A run ends with 1 where a change survives or none has that name, so only its words count."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([*MUTMUT, *arguments], cwd=copy, env=environment, capture_output=True, text=True, check=False)
    if arguments[0] == "run" and not (copy / "mutants").is_dir():
        raise SystemExit(f"mutmut could not begin:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout


def codes(copy: Path) -> Iterator[tuple[str, int | None]]:
    """Each possible change and what became of it (None: it was not tried)."""
    for path in copy.glob("mutants/src/**/*.meta"):
        yield from json.loads(path.read_text())["exit_code_by_key"].items()


if __name__ == "__main__":
    sys.exit(main())
