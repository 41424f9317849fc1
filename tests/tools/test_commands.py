"""A shell command is read as the shell reads it: words, pipes, substitutions, here-documents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_agent.tools.commands import Unreadable, read


def words(command: str) -> list[str]:
    return [" ".join(simple.words) for simple in read(command)]


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("ls -la", ["ls -la"]),
        ("a && b || c; d & e", ["a", "b", "c", "d", "e"]),
        ("a\nb\n\n  c", ["a", "b", "c"]),
        ("a 'b; c' \"d && e\"", ["a b; c d && e"]),
        ("r\\m -rf x", ["rm -rf x"]),
        ("a \\\n b", ["a b"]),
        ("A=1 B=2 make", ["make"]),
        ("A=1", [""]),
        ("(cd x; ls)", ["cd x", "ls"]),
        ("{ a; b; }", ["a", "b", ""]),
        ("if a; then b; else c; fi", ["a", "b", "c", ""]),
        ("for f in *.py; do wc $f; done", ["for f in *.py", "wc $f", ""]),
        ("sudo -u bob rm x", ["rm x"]),
        ("env -i A=1 nice -n 5 timeout 5 rm x", ["rm x"]),
        ("find . | xargs -n 1 rm", ["find .", "rm"]),
        ("bash -lc 'rm x; ls'", ["bash -lc rm x; ls", "rm x", "ls"]),
        ("sh -c \"bash -c 'rm x'\"", ["sh -c bash -c 'rm x'", "bash -c rm x", "rm x"]),
        ("eval 'rm x'", ["eval rm x", "rm x"]),
        ("echo `rm x`", ["echo `rm x`", "rm x"]),
        ("cat <<E\nrm x\nE\nls", ["cat", "ls"]),
        ("bash <<'E'\nrm x\nE", ["bash", "rm x"]),
        ("cat <<E | sh\nrm x\nE", ["cat", "sh", "rm x"]),
        ("", []),
    ],
)
def test_what_runs_is_found(command: str, found: list[str]) -> None:
    assert words(command) == found


def test_substitutions_are_read_however_deep() -> None:
    assert "rm x" in words("echo $(a $(b $(rm x)))")
    assert "rm x" in words('echo "$(rm x)"')


def test_redirections_are_writes_and_no_words() -> None:
    (simple,) = read("make 2>&1 >out.txt >> log < in.txt")

    assert simple.words == ("make",)
    assert [path for path in simple.writes if not path.isdecimal()] == ["out.txt", "log"]


def test_a_pipe_says_who_feeds_whom() -> None:
    assert [(simple.program, simple.fed_by) for simple in read("curl x | tee f | sudo bash; ls")] == [
        ("curl", ""),
        ("tee", "curl"),
        ("bash", "curl"),
        ("ls", ""),
    ]


def test_what_it_was_run_through_is_kept() -> None:
    (simple,) = read("sudo env A=1 /usr/bin/rm -rf x")

    assert (simple.program, simple.prefixes) == ("rm", ("sudo", "env"))


def test_bundled_and_long_options_are_options() -> None:
    (simple,) = read("rm -fr --verbose x")

    assert simple.has("r")
    assert simple.has("R", "--verbose")
    assert not simple.has("i", "--interactive")
    assert simple.operands == ("x",)


@pytest.mark.parametrize("command", ["echo 'abc", 'echo "abc', "eval eval eval eval eval eval eval eval x"])
def test_what_cannot_be_read_is_named(command: str) -> None:
    with pytest.raises(Unreadable):
        read(command)


@given(st.text(st.sampled_from("ab '\"\\$()`;|&<>\n{}=-/#*"), max_size=40))
def test_any_text_is_read_or_refused_and_never_a_crash(command: str) -> None:
    try:
        read(command)
    except Unreadable:
        return
