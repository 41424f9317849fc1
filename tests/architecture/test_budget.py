"""The program has a size: each package, the whole and its habits stay within figures that are lowered by hand."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from bench.shape import SOURCE, Shape, shape_of
from tests.architecture.source import ROOT

pytestmark = pytest.mark.timeout(120)  # It parses everything.

BUDGET = Path(__file__).with_name("budget.toml")


def over_budget(shape: Shape, budget: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Each figure that is over its budget, and each package that has none."""
    reached = {"logical": shape.logical, "whole": {**shape.figures, "small files with one importer": len(shape.alone)}}
    return [
        f"{table}: {name} is {value:g}, of at most {budget[table].get(name, 0):g}: take something out; "
        f"a new extension may raise {BUDGET.relative_to(ROOT)} by its own lines"
        for table, figures in reached.items()
        for name, value in figures.items()
        if value > budget[table].get(name, 0)
    ]


def test_every_package_and_the_whole_are_within_their_budget():
    assert over_budget(shape_of(SOURCE), tomllib.loads(BUDGET.read_text())) == []


def program(root: Path, **files: str) -> Shape:
    for name, text in files.items():
        path = root / f"{name.replace('_', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return shape_of(root)


def test_statements_and_except_clauses_count_and_docstrings_do_not(tmp_path: Path):
    text = '"""It."""\n\ndef f():\n    """It."""\n    try:\n        x = 1\n    except OSError:\n        pass\n'
    assert program(tmp_path, core_a=text).logical == {"core": 5}


def test_a_package_over_its_budget_or_without_one_is_named(tmp_path: Path):
    whole = dict.fromkeys((*Shape().figures, "small files with one importer"), 10_000)
    shape = program(tmp_path, core_a="x = 1\ny = 2\n", work_b="x = 1\n")
    assert [
        line.split(":")[1].split(",")[0] for line in over_budget(shape, {"logical": {"core": 1}, "whole": whole})
    ] == [
        " core is 2",
        " work is 1",
    ]


def test_a_small_module_of_one_importer_is_found_unless_a_table_names_it(tmp_path: Path):
    root = tmp_path / "hermes_agent"
    files = {"core_a": "x = 1\n", "core_b": "x = 1\n", "core_c": 'T = {"b": "hermes_agent.core.b:x"}\n'}
    imports = "from hermes_agent.core.a import x\nfrom hermes_agent.core.b import x as y\n" + "z = 1\n" * 60
    assert program(root, **files, core_d=imports).alone == ["core/a.py"]


def test_a_store_that_a_surface_reaches_and_a_late_import_are_found(tmp_path: Path):
    shape = program(tmp_path, gateway_a="runtime.store.outbox\nlate('x')\n", app_b="runtime.store.outbox\n")
    assert (shape.reaches, shape.figures["late()"]) == (["gateway/a.py:1: store"], 1)
