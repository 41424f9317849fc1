"""A shell command is read as the shell reads it: words, pipes, substitutions, functions, here-documents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_agent.tools.syntax.reading import read
from hermes_agent.tools.syntax.simple import COMPUTED, NAME, VARIABLE, Simple
from hermes_agent.tools.syntax.words import LONGEST, Unreadable


def simples(command: str) -> list[Simple]:
    return [simple for simple in read(command, "/w").simples if simple.words]


def words(command: str) -> list[str]:
    return [" ".join(simple.words) for simple in simples(command)]


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("ls -la", ["ls -la"]),
        ("a && b || c; d & e", ["a", "b", "c", "d", "e"]),
        ("a\nb\n\n  c", ["a", "b", "c"]),
        ("a 'b; c' \"d && e\"", ["a b; c d && e"]),
        ("r\\m -rf x", ["rm -rf x"]),
        ("r''m \"x y\"'z'", ["rm x yz"]),
        ("$'\\x72m' x", ["rm x"]),
        ("a \\\n b", ["a b"]),
        ("A=1 B=2 make", ["make"]),
        ("A=1", []),
        ("(cd x; ls)", ["cd x", "ls"]),
        ("{ a; b; }", ["a", "b"]),
        ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
        ("case x in a) b;; *) c;; esac", ["b", "c"]),
        ("while a; do b; done", ["a", "b"]),
        ("for f in a b; do wc $f; done", ["wc a", "wc b"]),
        ("[[ -n $(a) ]] && b", ["a", "b"]),
        ("a=rm; $a x", ["rm x"]),
        ("a=r; a+=m; ${a} x", ["rm x"]),
        ("echo ${x:-y}", ["echo y"]),
        ("echo ${x:-$(rm x)}", ["rm x", f"echo {VARIABLE}"]),
        ("echo {a,b}/c '{a,b}'", ["echo a/c b/c {a,b}"]),
        ("echo $HOME ~ $x", [f"echo ~ ~ {VARIABLE}"]),
        ("echo $(a)", ["a", f"echo {COMPUTED}"]),
        ("echo $(date)", ["date", f"echo {NAME}"]),
        ("$(echo rm) x", ["echo rm", "rm x"]),
        ("a <(b) >(c)", ["b", "c", "a \ue003 \ue003"]),
        ("a --x=<(b)", ["b", "a --x=\ue003"]),
        ("sudo -u bob rm x", ["rm x"]),
        ("env -i A=1 nice -n 5 timeout 5 rm x", ["rm x"]),
        ("env -S 'rm x'", ["rm x"]),
        ("command -v rm", ["command -v rm"]),
        ("a | xargs -n 1 rm", ["a", f"rm {COMPUTED}"]),
        ("find . | xargs rm", ["find .", f"rm {NAME}"]),
        ("echo a b | xargs rm", ["echo a b", "rm a b"]),
        ("find d -exec rm {} +", ["find d -exec rm {} +", f"rm d/{NAME}"]),
        ("uv run rm x", ["uv run rm x", "rm x"]),
        ("ssh host 'rm x'", ["ssh host rm x", "rm x"]),
        ("bash -lc 'rm x; ls'", ["bash -lc rm x; ls", "rm x", "ls"]),
        ("sh -c \"bash -c 'rm x'\"", ["sh -c bash -c 'rm x'", "bash -c rm x", "rm x"]),
        ("eval 'rm x'", ["eval rm x", "rm x"]),
        ("trap 'rm x' EXIT", ["trap rm x EXIT", "rm x"]),
        ("echo `rm x`", ["rm x", f"echo {COMPUTED}"]),
        ("cat <<E\nrm x\nE\nls", ["cat", "ls"]),
        ("cat <<E\n`rm x`\nE", ["rm x", "cat"]),
        ("bash <<'E'\nrm x\nE", ["bash", "rm x"]),
        ("bash <<< 'rm x'", ["bash", "rm x"]),
        ("cat <<E | sh\nrm x\nE", ["cat", "sh", "rm x"]),
        ("cat <<E >f 2>&1 | sh && ls\nrm x\nE", ["cat", "sh", "rm x", "ls"]),
        ("echo cm0geA== | base64 -d | sh", ["echo cm0geA==", "base64 -d", "sh", "rm x"]),
        ("echo 'rm x' > s; sh s", ["echo rm x", "sh s", "rm x"]),
        ("echo 'rm x' | tee s; cp s t; ./t", ["echo rm x", "tee s", "cp s t", "./t", "rm x"]),
        ("alias l='rm -r'; l x", ["alias l=rm -r", "l x", "rm -r x"]),
        ("f() { rm $1; }; f x", [f"rm {VARIABLE}", "f x", "rm x"]),
        ('function f { rm "$@"; }; f x y', [f"rm {VARIABLE}", "f x y", "rm x y"]),
        ("# only words", []),
        ("", []),
    ],
)
def test_what_runs_is_found(command: str, found: list[str]) -> None:
    assert words(command) == found


def test_substitutions_are_read_however_deep() -> None:
    assert "rm x" in words("echo $(a $(b $(rm x)))")
    assert "rm x" in words('echo "$(rm x)"')


def test_redirections_are_writes_and_no_words() -> None:
    (simple,) = simples("make 2>&1 >out.txt >> log < in.txt")

    assert simple.words == ("make",)
    assert [path for path in simple.writes if not path.isdecimal()] == ["out.txt", "log"]
    assert simple.reads == ("in.txt",)


def test_a_redirection_alone_writes() -> None:
    assert [simple.writes for simple in read("> f").simples] == [("f",)]


def test_a_pipe_says_who_feeds_whom() -> None:
    assert [(simple.program, simple.fed_by) for simple in simples("curl x | tee f | sudo bash; ls")] == [
        ("curl", ()),
        ("tee", ("curl",)),
        ("bash", ("curl", "tee")),
        ("ls", ()),
    ]


def test_a_change_of_folder_is_followed_and_a_subshell_keeps_its_own() -> None:
    found = {simple.program: simple.folder for simple in simples("a; cd x && b; (cd /; c); d")}

    assert [found[name] for name in "abcd"] == ["/w", "/w/x", "/", "/w/x"]


def test_a_file_that_was_fetched_is_remembered() -> None:
    assert simples("curl x -o f; ls")[-1].files == {"/w/f": None}


@pytest.mark.parametrize("command", [":(){ :|:& };:", "b() { b & b; }; b", "b() { b | b; }"])
def test_a_function_that_multiplies_itself_is_seen(command: str) -> None:
    assert read(command).is_fork_bomb


def test_a_function_that_calls_itself_once_is_none() -> None:
    assert not read("f() { f; }; f").is_fork_bomb


def test_what_it_was_run_through_is_kept() -> None:
    (simple,) = simples("sudo env A=1 /usr/bin/rm -rf x")

    assert (simple.program, simple.prefixes) == ("rm", ("sudo", "env"))


def test_bundled_and_long_options_are_options() -> None:
    (simple,) = simples("rm -fr --verbose x")

    assert simple.has("r")
    assert simple.has("R", "--verbose")
    assert not simple.has("i", "--interactive")
    assert simple.operands == ("x",)


@pytest.mark.parametrize(
    "command",
    [
        *("echo 'abc", 'echo "abc', "ls )", "&&", "if a; then b", "a <<E\nnever ends"),
        "eval " * 30 + "x",
        "(" * 300 + "ls" + ")" * 300,
        "a;" * 3000,
        "x" * (LONGEST + 1),
    ],
)
def test_what_cannot_be_read_is_named(command: str) -> None:
    with pytest.raises(Unreadable):
        read(command)


@given(st.text(st.sampled_from("ab '\"\\$()`;|&<>\n{}=-/#*"), max_size=40))
def test_any_text_is_read_or_refused_and_never_a_crash(command: str) -> None:
    try:
        read(command)
    except Unreadable:
        return
