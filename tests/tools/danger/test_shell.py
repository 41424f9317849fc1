"""The short reading of shell commands tells which programs run, with which words."""

from __future__ import annotations

import pytest

from hermes_agent.tools.danger.shell import LONGEST, Unreadable, is_known, printed, read, unescaped, unwrapped
from hermes_agent.tools.danger.verdict import COMPUTED, VARIABLE


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("a b; c d && e || f | g & h", ["a b", "c d", "e", "f", "g", "h"]),
        ("a 'b  c' \"d $HOME\" e\\ f", ["a b  c d ~ e f"]),
        ('x=1 y=2; a $x${y}z "$x $y"', ["", "a 12z 1 2"]),
        ("a $(echo b c) `echo d`", ["echo b c", "echo d", "a b c d"]),
        ("for i in b c; do a $i; done", ["a b c"]),
        ("if a; then b; else c; fi", ["a", "b", "c"]),
        ("case $x in b) a;; *) c;; esac; d", ["a", "c", "d"]),
        ("f() { a $1; }; f b", [f"a {VARIABLE}", "f b"]),
        ("a <<E\nb $HOME\nE\nc", ["a", "c"]),
        ("a $((1 + 2)) # no", ["a \ue002"]),
        ("sudo -u me X=1 a b", ["sudo -u me X=1 a b", "a b"]),
        ("sh -c 'a; b'", ["sh -c a; b", "a", "b"]),
        ("eval a b", ["eval a b", "a b"]),
        ("xargs -n 1 a <<< 'b c'", ["xargs -n 1 a", "a b c"]),
        ('x=(a b); "${x[@]}"', ["", "a b"]),
        ("[[ -f x && -d y ]] && a", ["[[ -f x", "-d y ]]", "a"]),
    ],
)
def test_programs_and_words(command: str, lines: list[str]) -> None:
    assert [" ".join(simple.words) for simple in read(command)] == lines


def test_where_a_program_runs_and_what_it_reads_and_writes() -> None:
    first, second, third = read("cd sub && a > out 2>&1 < in", "/w")[1], *read("cd x; (cd y; a); b", "/w")[2:4]

    assert (first.folder, first.writes, first.words) == ("/w/sub", ("out", "1"), ("a", "in"))
    assert (second.folder, third.folder) == ("/w/x/y", "/w/x")


def test_what_nobody_can_know_is_marked() -> None:
    unknown, computed = read('a "$UNSET" "$(b)"')[1].words[1:]

    assert (unknown, computed) == (VARIABLE, COMPUTED)
    assert not is_known(unknown)
    assert not is_known(computed)


@pytest.mark.parametrize("command", ["a 'b", 'a "b', "a $(b", "a `b", "(a", "a" * (LONGEST + 1), "$(" * 99])
def test_what_never_ends_cannot_be_read(command: str) -> None:
    with pytest.raises(Unreadable):
        read(command)


def test_words_that_programs_print_and_run() -> None:
    (echo,), (plain,) = read("echo -n a b"), read("a b")

    assert (printed(echo), printed(plain)) == ("a b", COMPUTED)
    assert unescaped(r"\x72\155\n") == "rm\n"
    assert unwrapped(plain) is None


def test_options_and_their_values() -> None:
    (simple,) = read("/bin/a -xf b --out=c --force -- -d")

    assert (simple.program, simple.operands) == ("a", ("b", "-d"))
    assert simple.has("f")
    assert simple.has("", "--force")
    assert not simple.has("d")
    assert (simple.value("-f"), simple.value("--out"), simple.value("-q")) == ("b", "c", "")
