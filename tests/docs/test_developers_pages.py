"""What is said to whoever changes the program is true: folders, functions, tables, extensions, measurements."""

import ast
import re
from collections.abc import Collection
from pathlib import Path

from bench.__main__ import MODULES
from hermes_agent.app.commands import COMMANDS as SLASH
from hermes_agent.app.manifest import TOOLSETS
from hermes_agent.cli.table import COMMANDS as SUBCOMMANDS
from hermes_agent.gateway.channels import CHANNELS
from hermes_agent.memory.backends import BACKENDS as MEMORIES
from hermes_agent.providers.dialects import DIALECTS
from hermes_agent.providers.vendors import VENDORS
from hermes_agent.sandbox.place import PLACES
from hermes_agent.store.database import DIALECTS as DATABASES
from tests.architecture.source import PACKAGE, ROOT
from tests.architecture.test_extensions import KINDS
from tests.docs.pages import DOCS, code, out_of_step, page, table

SOURCE = ROOT / PACKAGE
MAPS = [ROOT / "AGENTS.md", DOCS / "architecture.md", DOCS / "extending.md"]
# `agent/loop.py` `run`: a file, and the names in it that follow.
NAMED = re.compile(r"`([\w/]+\.py)`((?:,? `(?!\S+\.py`)[A-Za-z_][\w.]*`)+)")
BENCH = re.compile(r"python -m bench(\.\w+)?((?: [a-z_]+)*)")


def folders() -> set[str]:
    """The packages that hold anything."""
    return {folder.name for folder in SOURCE.iterdir() if folder.is_dir() and (folder / "__init__.py").exists()}


def defined(file: Path) -> set[str]:
    """Every class, function, method (`Class.method` too) and module-level name of a file."""
    found: set[str] = set()
    for node in ast.parse(file.read_text()).body:
        match node:
            case ast.ClassDef(name=name, body=body):
                inside = {each.name for each in body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
                found |= {name, *inside, *(f"{name}.{each}" for each in inside)}
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
    return found


def undefined(text: str, source: Path = SOURCE) -> list[str]:
    """Names that a map puts into a file that does not hold them."""
    return [
        f"{file}: has no {name}"
        for file, names in NAMED.findall(text)
        for name in code(names)
        if not (source / file).exists() or name not in defined(source / file)
    ]


def unmeasured(text: str, together: Collection[str], alone: Collection[str]) -> list[str]:
    """Measurements that a page names: those of `python -m bench NAME` and `python -m bench.NAME` that are not there."""
    found = BENCH.findall(text)
    missing = {name for _, names in found for name in names.split()} - set(together)
    return sorted(missing | ({module[1:] for module, _ in found if module} - set(alone)))


def test_the_map_has_every_folder_and_no_other():
    told = [code(row[0])[0].rstrip("/") for row in table((ROOT / "AGENTS.md").read_text(), "folder")]
    assert out_of_step(told, folders()) == []
    told = [code(row[0])[0].rstrip("/") for row in table(page("architecture.md"), "package")]
    assert out_of_step(told, folders()) == []


def test_every_name_that_a_map_puts_into_a_file_is_there():
    assert [problem for file in MAPS for problem in undefined(file.read_text())] == []


def test_every_table_of_the_database_is_told():
    sql = "".join(file.read_text() for file in sorted((SOURCE / "store/sql/sqlite").glob("*.sql")))
    told = [name for row in table(page("architecture.md"), "table") for name in code(row[0])]
    assert out_of_step(told, re.findall(r"CREATE TABLE (\w+)", sql)) == []


def test_every_kind_of_extension_says_how_one_is_added():
    text = page("extending.md")
    assert (
        out_of_step(
            (name for row in table(text, "kind") for name in code(row[1])), {f"{kind.folder}/" for kind in KINDS}
        )
        == []
    )
    assert [f"{kind.file} {kind.table}" for kind in KINDS if f"`{kind.file}` `{kind.table}`" not in text] == []


def test_every_extension_is_named_on_a_page_for_readers():
    chat = {each.split()[0] for each in code(page("chat.md"))}
    unnamed = {
        "models.md": {*VENDORS, *DIALECTS}.difference(code(page("models.md"))),
        "gateway.md": {name for name in CHANNELS if f"## {name}" not in page("gateway.md").lower()},
        "memory.md": {name for name in MEMORIES if name not in page("memory.md").lower()},
        "chat.md": {f"/{name}" for name in SLASH} - chat,
        "tools.md": set(TOOLSETS).difference(code(page("tools.md"))),
        "places.md": set(PLACES).difference(code(page("places.md"))),
        "cli.md": {name for name in SUBCOMMANDS if f"hermes {name}" not in page("cli.md")},
        "postgresql.md": {name.value for name in DATABASES if name.value not in page("postgresql.md").lower()},
    }
    assert {name: missing for name, missing in unnamed.items() if missing} == {}


def test_only_measurements_that_exist_are_named():
    alone = {file.stem for file in (ROOT / "bench").glob("*.py") if '"__main__"' in file.read_text()}
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    assert [name for file in pages for name in unmeasured(file.read_text(), MODULES, alone)] == []


MEASURED = re.compile(r"\d ms\b")
LIMITS = ("within 20 ms (`LINGER`", "in those 20 ms")
"""What the program promises rather than what was measured."""


def unsourced(text: str) -> list[str]:
    """Sections that tell of milliseconds and do not say which measurement prints them."""
    for limit in LIMITS:
        text = text.replace(limit, "")
    sections = re.split(r"^#+ ", text, flags=re.MULTILINE)
    return [each.partition("\n")[0] for each in sections if MEASURED.search(each) and "python -m bench" not in each]


def test_a_page_that_tells_of_milliseconds_names_what_measures_them():
    pages = [file for file in DOCS.rglob("*.md") if file.name not in ("cli.md", "configuration.md")]
    assert {file.name: found for file in pages if (found := unsourced(file.read_text()))} == {}


def test_milliseconds_without_a_measurement_are_found():
    assert unsourced("## Speed\nIt takes 6.5 ms.\n## Other\n7 ms, see `python -m bench log`.") == ["Speed"]


def test_a_name_that_a_file_does_not_hold_is_found(tmp_path: Path):
    (tmp_path / "a.py").write_text("TABLE = 1\n\n\nclass Box:\n    async def open(self): ...\n")
    text = "`a.py` `Box.open`, `a.py` `TABLE`, `a.py` `close`, `b.py` `Box`"
    assert undefined(text, tmp_path) == ["a.py: has no close", "b.py: has no Box"]


def test_a_measurement_that_does_not_exist_is_found():
    text = "`python -m bench start gone`, `python -m bench.log` and `python -m bench.lost`"
    assert unmeasured(text, {"start"}, {"log"}) == ["gone", "lost"]
