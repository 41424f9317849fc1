"""What reading is made of: words, what programs print, what runs what."""

from __future__ import annotations

import pytest

from hermes_agent.tools.syntax import words, wrapped
from hermes_agent.tools.syntax.simple import NAME, VARIABLE, Simple, is_a_hook, is_known, output_of, substituted
from hermes_agent.tools.syntax.words import Unreadable, parse


@pytest.mark.parametrize(
    ("line", "stdin", "printed"),
    [
        ("echo a b", None, "a b\n"),
        ("echo -n a", None, "a"),
        ("echo -e a\\tb", None, "a\tb\n"),
        ("printf %s-%s\\n a b", None, "a-b\n"),
        ("cat", "x", "x"),
        ("cat f", "x", None),
        ("base64 -d", "cm0=", "rm"),
        ("base64 -d", "c", None),
        ("xxd -r -p", "726d", "rm"),
        ("rev", "mr", "rm"),
        ("sort", "x", None),
    ],
)
def test_what_a_program_prints_is_known_where_its_words_tell(line: str, stdin: str | None, printed: str | None) -> None:
    assert output_of(Simple(words=tuple(line.split()), stdin=stdin)) == printed


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("pwd", "/w"),
        ("mktemp -d", f"/tmp/{NAME}"),
        ("git rev-parse --show-toplevel", "."),
        ("git ls-files", NAME),
        ("dirname a/b", "a"),
        ("find src", NAME),
        ("find /", None),
        ("curl x", None),
    ],
)
def test_what_stands_for_a_substitution(line: str, value: str | None) -> None:
    assert substituted([Simple(words=tuple(line.split()), folder="/w")]) == value


def test_what_tools_tell_people_to_eval_is_known() -> None:
    assert is_a_hook("ssh-agent -s")
    assert is_a_hook("direnv hook bash")
    assert not is_a_hook("curl x; ssh-agent -s")


def test_an_option_has_its_value_in_every_spelling() -> None:
    for line in ("a -o x", "a -ox", "a -qo x", "a --out x", "a --out=x"):
        assert Simple(words=tuple(line.split())).value("-o", "--out") == "x"


def test_a_subshell_changes_nothing_outside() -> None:
    outer = words.Scope(folder="/w", variables={"a": "1"})
    inner = outer.inner()
    inner.variables["a"] = "2"
    inner.go_to(("/",))

    assert (outer.value("a"), outer.folder, inner.folder) == ("1", "/w", "/")
    assert outer.value("b") == VARIABLE


def test_where_a_variable_leads_nobody_knows() -> None:
    place = words.Scope(folder="/w")
    place.go_to((VARIABLE,))

    assert not is_known(place.folder)


def test_here_documents_may_stand_before_other_redirections() -> None:
    assert not parse("cat <<E >f 2>&1 | sh\nx\nE").has_error


def test_what_is_wrong_is_shown() -> None:
    with pytest.raises(Unreadable, match="near"):
        parse("ls )")


def test_every_wrapper_gives_the_command_behind_it() -> None:
    for name, prefix in wrapped.PREFIXES.items():
        line = (name, *(["own"] * prefix.operands), "rm", "x")
        assert wrapped.unwrapped(Simple(words=line)).words[:2] == ("rm", "x"), name


def test_most_words_of_braces_are_bounded() -> None:
    node = parse("echo " + "{a,b}" * 40).named_children[0].named_children[1]

    assert len(words.expand(node, words.Scope(folder="/"), lambda _: [])) <= words.MOST_BRACES
