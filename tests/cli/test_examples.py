"""The example of every command, run as it stands in the help."""

from __future__ import annotations

import asyncio
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from hermes_agent.app.operations.memory import put_note
from hermes_agent.cli.examples import EXAMPLES
from hermes_agent.cli.group import hermes
from hermes_agent.cli.operation import ask
from hermes_agent.cli.surface import Surface
from hermes_agent.cli.table import ELSEWHERE, GROUPS, SERVES, SUMMARIES
from hermes_agent.core.clock import SystemClock
from hermes_agent.memory.settings import Target
from hermes_agent.tools.checkpoints.checkpoints import Cause, Checkpoints
from hermes_agent.tools.settings import CheckpointSettings
from tests.cli.shell import PROGRAM, ROOT, every_leaf, typed
from tests.learning.curator.harness import Upkeep, kept_home
from tests.measured import measured
from tests.skills.hub.origin import origin

LEAVES = dict(every_leaf())
LINES = [(path, line) for path, lines in EXAMPLES.items() if path for line in lines.splitlines()]
FOLLOWS = " -f"
WITHOUT = {
    **dict.fromkeys(SERVES, "goes on until it is stopped, or asks a person"),
    **dict.fromkeys(("login", "mcp login", "mcp reauth", "model test openai/gpt-5.2"), "asks a service"),
    **dict.fromkeys(("config edit", "memory edit", "skills edit"), "opens an editor"),
    **dict.fromkeys(("gateway setup telegram", "setup", "model pick"), "asks a person; has tests of its own"),
    **dict.fromkeys(("gateway reload", "gateway restart", "gateway start", "gateway stop"), "needs a gateway"),
    "gateway uninstall": "needs systemd",
    "approvals revoke": "needs an approval",
    'goals add "All': "works until it is met",
    "skills install tea --from owner": "asks a service",
    "webhook test": "needs a server",
    **dict.fromkeys(("agents log", "agents show", "agents stop"), "needs an agent at work"),
    **dict.fromkeys(
        ("goals check", "goals clear", "goals done", "goals pause", "goals resume", "goals show"), "a goal"
    ),
    **dict.fromkeys(("learn approve", "learn reject", "learn adopt", "curator rollback"), "needs what a review left"),
    **dict.fromkeys(("memory facts retract", "memory facts undo", "memory facts log", "memory facts show"), "a memory"),
    **dict.fromkeys(("mcp test", "mcp logout", "mcp add", "mcp import"), "asks a server"),
    "cron blueprint tea": "needs a skill that proposes a job",
}
"""Examples that are only parsed, by the beginning of the line, and what they need."""
BEFORE = {
    "curator restore": "skills archive make-tea",
    "skills restore": "skills archive make-tea",
    "skills uninstall": "skills install tea --from ./shop -y",
    "skills tap remove": "skills tap add ./shop",
    "kanban archive": "kanban cancel t_3fa9c1",
    "kanban unblock": "kanban block t_3fa9c1 why",
    "send": "config set gateway.channels.telegram.home 123",
    "trust remove": "trust add ~/project",
    "bundles show": "bundles add release release-notes",
    "bundles remove": "bundles add release release-notes",
    "hooks revoke": "hooks allow tell-me",
    "hooks test": "hooks allow tell-me",
    "secrets allow": "secrets set GITHUB_TOKEN",
    "secrets remove": "secrets set GITHUB_TOKEN",
    "webhook remove": "webhook add push --prompt Look",
    "webhook test": "webhook add push --prompt Look",
}
"""What a line needs before it."""


class Prepared:
    """A home and a folder in which everything is that the examples name; `words` are what is called by chance."""

    def __init__(self, root: Path) -> None:
        self.home, self.work = root / "home", root / "work"
        self.words: dict[str, str] = {}

    def run(self, *words: str, stdin: str = "") -> str:
        said = subprocess.run(
            [sys.executable, "-c", PROGRAM, *words],
            cwd=self.work,
            input=stdin,
            text=True,
            capture_output=True,
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src"), "HERMES_HOME": str(self.home), **measured()},
            check=True,
        )
        return said.stdout


async def saved(made: Prepared) -> None:
    await Checkpoints(made.home / "checkpoints", CheckpointSettings(), SystemClock()).save(made.work, Cause(why="make"))


async def filled(root: Path) -> None:
    async with kept_home(root, Upkeep()) as kept:
        await kept.make("make-tea", days=-100)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """Made once; every example runs on a copy."""
    made = Prepared(root := tmp_path_factory.mktemp("examples"))
    asyncio.run(filled(root))
    made.work.mkdir(exist_ok=True)
    origin(made.work / "shop").skill("tea", "1. Boil.", "Makes tea in a pot.")
    for name, text in {
        "report.md": "A report.\n",
        "jobs.json": '{"jobs": []}',
        "beads.jsonl": "",
        "facts.json": '{"x": 1}',
        "payload.json": "{}",
        ".mcp.json": '{"mcpServers": {}}',
    }.items():
        (made.work / name).write_text(text)
    with (made.home / "config.yaml").open("a") as file:
        file.write("hooks:\n  tell-me:\n    on: [run:end]\n    command: 'true'\n")
        file.write("mcp_servers:\n  files:\n    command: cat\n")
    (made.home / "profiles/writer").mkdir(parents=True)
    made.run("config", "unset", "model.base_url")
    made.run("config", "set", "model.default", "demo/scripted")
    made.run("-m", "demo", "--record", "session.cassette", "-z", "Which files are here?")
    session = json.loads(made.run("sessions", "list", "--json"))[0]["id"]
    made.run("sessions", "rename", session, "Fix the parser")
    made.run("cron", "add", "every day at 09:00", "Sum up my mail.", "--name", "mail")
    for word in ("t_3fa9c1", "t_77b0aa"):
        made.words[word] = json.loads(made.run("kanban", "add", "Write the release notes", "--json"))["id"]
    surface = Surface(variables={"HERMES_HOME": str(made.home)})
    ask(surface, partial(put_note, target=Target.MEMORY, after=b"- Likes tea.\n", before=None))
    made.words["ABCD2345"] = ask(surface, lambda access: access.system.store.pairing.ask("telegram", "123", "Ann"))
    return made


@pytest.fixture
def copy(prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Prepared]:
    made = Prepared(tmp_path)
    shutil.copytree(prepared.home, made.home)
    shutil.copytree(prepared.work, made.work)
    (tmp_path / "project").mkdir()
    made.words = {**prepared.words, "~/project": str(tmp_path / "project")}
    monkeypatch.chdir(made.work)
    monkeypatch.setenv("HERMES_HOME", str(made.home))
    yield made


def words_of(line: str, made: Prepared) -> tuple[list[str], str]:
    """A line as the program gets it, and what its standard input holds."""
    words = [made.words.get(word, word) for word in shlex.split(line)]
    if ">" in words:
        words = words[: words.index(">")]
    if "<" in words:
        return words[: words.index("<")], Path(words[-1]).read_text()
    return words, "secret\n"


def test_every_command_has_an_example_and_json() -> None:
    assert LEAVES.keys() == EXAMPLES.keys() - {""}
    for path, command in LEAVES.items():
        flags = [flag for param in command.params for flag in param.opts]
        assert flags.count("--json") == (path not in SERVES), path
        assert all(line.startswith(path) or path == "chat" for line in EXAMPLES[path].splitlines()), path


@pytest.mark.parametrize(("path", "line"), LINES)
def test_an_example_is_what_its_command_takes(path: str, line: str, tmp_path: Path) -> None:
    words, _ = words_of(line.partition(" <")[0].partition(" --file report.md")[0], Prepared(tmp_path))
    LEAVES[path].make_context(path, words[path.count(" ") + 1 :], obj=Surface())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "line"), [each for each in LINES if not any(each[1].startswith(start) for start in WITHOUT)]
)
def test_an_example_runs_in_a_prepared_home(path: str, line: str, copy: Prepared) -> None:
    if before := BEFORE.get(path):
        words, stdin = words_of(before, copy)
        typed(copy.home, *words, stdin=stdin)
    if path.startswith("checkpoints"):
        asyncio.run(saved(copy))
    words, stdin = words_of(line.replace(FOLLOWS, "") if path.endswith("logs") else line, copy)
    json_ = () if "--json" in words else ("--json",)
    said = typed(copy.home, *words, *json_, stdin=stdin, HOME=str(copy.home))
    assert said.code == 0, [line for line in said.out.splitlines() if "fail" in line]
    if said.out and not path.endswith("logs"):
        json.loads(said.out)


def test_the_help_lists_every_command_once_under_a_heading_and_begins_with_them() -> None:
    said = CliRunner().invoke(hermes, ["--help"], obj=Surface()).output

    assert sorted(" ".join(GROUPS.values()).split()) == sorted(SUMMARIES)
    assert all(f"{title}:" in said for title in GROUPS)
    assert said.index("Begin:") < said.index("Options:") < said.index("Examples:")
    assert max(map(len, said.splitlines())) <= 80


@pytest.mark.parametrize("word", ["backup", "batch", "dashboard", "help", "plugins", "update", "Version", "run"])
def test_a_word_for_what_is_elsewhere_is_one_sentence(word: str) -> None:
    said = CliRunner().invoke(hermes, [word], obj=Surface())

    assert said.exit_code == 2
    assert f"There is no command `{word}`. {ELSEWHERE[word.lower()]}\n" in said.output
    assert "Did you mean" not in said.output


def test_a_slip_is_understood_and_a_far_word_is_not_guessed_at() -> None:
    assert "Did you mean `hermes sessions`?" in CliRunner().invoke(hermes, ["sesions"], obj=Surface()).output
    for word in ("login2xyz", "blah", "zzz"):
        assert "Did you mean" not in CliRunner().invoke(hermes, [word], obj=Surface()).output
    assert not ELSEWHERE.keys() & SUMMARIES.keys()
