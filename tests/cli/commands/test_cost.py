"""`hermes cost`."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from tests.cli.kept import filled
from tests.cli.shell import typed


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_what_is_unknown_is_said_and_never_zero(tmp_path: Path) -> None:
    said = typed(filled(tmp_path), "cost", "--by", "model").out
    known = "0.7500, price unknown for 1, 1 unfinished, at most 0.5000"

    assert rows(said) == [
        ["MODEL", "CALLS", "INPUT", "CACHED", "SHARE", "OUTPUT", "US", "DOLLARS"],
        ["open", "1", "0+", "0+", "-", "0+", "1", "unfinished,", "at", "most", "0.5000"],
        ["priced", "2", "2,000", "1,000", "50", "%", "400", "0.7500"],
        ["unpriced", "1", "1,000", "500", "50", "%", "200", "price", "unknown", "for", "1"],
        ["all", "4", "3,000+", "1,500+", "50", "%", "600+", *known.split()],
    ]


def test_days_are_counted_from_a_date_on(tmp_path: Path) -> None:
    found = json.loads(typed(filled(tmp_path), "cost", "--since", "2023-11-16", "--json").out)

    assert [(total["key"], total["calls"]) for total in found] == [("2023-11-16", 1), ("2023-11-17", 1)]


def test_days_are_counted_up_to_a_date(tmp_path: Path) -> None:
    words = ("cost", "--since", "2023-11-15", "--until", "2023-11-16", "--json")

    assert [total["key"] for total in json.loads(typed(filled(tmp_path), *words).out)] == ["2023-11-15"]


def test_limits_are_shown_with_what_is_left(tmp_path: Path) -> None:
    home = filled(tmp_path)
    (home / "config.yaml").write_text("budget:\n  call: {tokens: 9}\n  run: {money: 2}\n")

    assert rows(typed(home, "cost", "--limits").out) == [
        ["LIMIT", "OF", "MOST", "USED", "RESERVED", "LEFT"],
        ["budget.call.tokens", "each", "call", "9", "tokens", "-", "-", "-"],
        ["budget.run.money", "r", "$2.00", "$1.25", "$0.50", "$0.25"],
    ]
    assert json.loads(typed(home, "cost", "--limits", "--json").out)[1] == {
        "setting": "budget.run.money",
        "of": "r",
        "most": 2.0,
        "used": 1.25,
        "reserved": 0.5,
        "left": 0.25,
        "unpriced": 0,
    }


def test_no_limit_is_said(tmp_path: Path) -> None:
    home = filled(tmp_path)

    assert "No limit of money or tokens is set." in typed(home, "cost", "--limits").err
    assert typed(home, "cost", "--limits", "--json").out == "[]\n"


def test_nothing_used_is_said(tmp_path: Path) -> None:
    assert typed(filled(tmp_path), "cost", "--since", "1h").err == "No model was asked in that time.\n"


@pytest.mark.parametrize("when", ["yesterday", "7x", "2023-13-01"])
def test_a_time_that_is_none_is_refused(tmp_path: Path, when: str) -> None:
    with pytest.raises(click.UsageError, match="neither a span"):
        typed(tmp_path, "cost", "--since", when)
