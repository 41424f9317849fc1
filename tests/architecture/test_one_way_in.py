import ast
import itertools
import re
import tomllib
from collections.abc import Iterable, Sequence
from typing import TypeGuard

import pytest

from tests.architecture.one_way_in import EXEMPTIONS, NEVER_IN_TESTS, Exemption, may
from tests.architecture.source import ROOT, Source, names_used, source, sources

pytestmark = pytest.mark.timeout(120)  # The first of a process parses everything.

LINT = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
BANNED = frozenset(LINT["flake8-tidy-imports"]["banned-api"])


def matches(where: str, path: str) -> bool:
    """Whether `path` fits a pattern of pyproject.toml: `**` is anything, `{a,b}` is one of these."""
    pattern = re.escape(where).replace(r"\*\*", ".*").replace(r"\{", "(").replace(r"\}", ")").replace(",", "|")
    return re.fullmatch(pattern, path) is not None


def banned_names(module: Source) -> set[str]:
    return {ban for used, ban in itertools.product(names_used(module), BANNED) if f"{used}.".startswith(f"{ban}.")}


def beyond_exemption(modules: Iterable[Source], exemptions: Sequence[Exemption]) -> list[str]:
    found = []
    for module in modules:
        allowed = {name for one in exemptions if matches(one.where, str(module.path)) for name in one.names}
        found += [f"{module.path}: uses {name}" for name in sorted(banned_names(module) - allowed)]
    return found


def forbidden_in_tests(modules: Iterable[Source]) -> list[str]:
    found = []
    for module in modules:
        uses = itertools.product(names_used(module), NEVER_IN_TESTS.items())
        found += [
            f"{module.path}: {name}: {instead}" for used, (name, instead) in uses if f"{used}.".startswith(f"{name}.")
        ]
        patches = (node for node in module.nodes if is_patch(node))
        found += [
            f"{module.path}:{node.lineno}: replaces a part of the program: pass a fake instead" for node in patches
        ]
    return found


def is_patch(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and node.attr == "setattr" and getattr(node.value, "id", "") == "monkeypatch"


def test_a_file_uses_only_what_it_was_let_off_for():
    assert beyond_exemption(sources("src"), EXEMPTIONS) == []


def test_ruff_lets_off_no_other_files():
    let_off = {
        where for where, codes in LINT["per-file-ignores"].items() if "TID251" in codes and where.startswith("src")
    }
    assert let_off <= {exemption.where for exemption in EXEMPTIONS}


def test_every_ban_says_what_to_do_instead():
    assert [
        name for name, ban in LINT["flake8-tidy-imports"]["banned-api"].items() if len(ban["msg"].split()) < 5
    ] == []


def test_tests_neither_sleep_nor_patch():
    assert forbidden_in_tests(sources("tests")) == []


@pytest.mark.parametrize(
    "text",
    [
        "import time\ntime.time()",
        "from time import time\ntime()",
        "import time as t\nt.time()",
        "import datetime\ndatetime.datetime.now()",
        "from datetime import datetime\ndatetime.now()",
        "import os\nos.environ['A']",
        "from os import environ",
        "import apsw.ext",
        "import asyncio\nasyncio.gather()",
    ],
)
def test_a_second_way_in_is_found_however_it_is_written(text: str):
    assert len(beyond_exemption([source("src/hermes_agent/tools/shell.py", text)], EXEMPTIONS)) == 1


def test_what_is_like_a_banned_name_is_not_one():
    text = "import time\nimport asyncio\ntime.time_nothing\ntime.monotonic()\nasyncio.TaskGroup()"
    assert beyond_exemption([source("src/hermes_agent/tools/shell.py", text)], EXEMPTIONS) == []


def test_an_exemption_is_for_its_names_and_files_only():
    exemption = may("src/{a,b}.py", "os.environ", because="it is a test")
    assert beyond_exemption([source("src/a.py", "import os\nos.environ")], [exemption]) == []
    assert beyond_exemption([source("src/a.py", "import subprocess")], [exemption]) != []
    assert beyond_exemption([source("src/c.py", "import os\nos.environ")], [exemption]) != []


@pytest.mark.parametrize(
    "text",
    [
        "from unittest.mock import patch",
        "from unittest import mock",
        "import time\ntime.sleep(1)",
        "def test(monkeypatch):\n    monkeypatch.setattr(os, 'sep', ':')",
    ],
)
def test_sleeping_and_patching_are_found(text: str):
    assert len(forbidden_in_tests([source("tests/test_a.py", text)])) == 1


LATE = re.compile(r"[a-z_][a-z0-9_]*(?:\.[A-Za-z0-9_]+)+(?::\w+)?")


def private_of_others(module: Source) -> list[str]:
    """The private modules and names of other packages that a file takes, also by a name that is loaded late."""
    written = {node.value for node in module.nodes if isinstance(node, ast.Constant)}
    late = {text for text in written if isinstance(text, str) and LATE.fullmatch(text)}
    return sorted(
        name
        for name in names_used(module) | late
        if not name.startswith(("hermes_agent.", "tests."))
        and any(part.startswith("_") and not part.endswith("__") for part in re.split("[.:]", name))
    )


def test_nothing_private_of_another_package_is_used():
    """A dependency may change what is private in any version, and we ask for a least one only."""
    assert {str(each.path): found for each in sources("src") if (found := private_of_others(each))} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from lib._api import Thing", ["lib._api.Thing"]),
        ("import lib._api", ["lib._api"]),
        ("from lib import _thing", ["lib._thing"]),
        ("import lib\nlib.sub._thing()", ["lib.sub._thing"]),
        ("LIBRARY = 'lib.sub._errors'", ["lib.sub._errors"]),
        ("X = 'lib._errors:Broken'", ["lib._errors:Broken"]),
        ("from __future__ import annotations\nimport lib\nlib.thing.__doc__\nX = '_a'", []),
        ("from hermes_agent.core._own import thing", []),
    ],
)
def test_what_is_private_is_found_however_it_is_written(text: str, found: list[str]):
    assert private_of_others(source("src/hermes_agent/x.py", text)) == found
