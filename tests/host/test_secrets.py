"""Where keys are kept, and that no text shows them."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import time
import timeit
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings, strategies as st

from hermes_agent.core.errors import ConfigError, HomeError
from hermes_agent.host.secrets import CUT, LARGE, Redaction, _forms, as_long, open_secrets
from tests.host.settings_for_tests import home_at

ENV = """\
# keys
export OPENAI_API_KEY="a b\\"c"   # quoted
EMPTY=
PLAIN=value # comment
HASH=a#b
SINGLE='$x "y" #z'
no equals here
"""


def test_the_usual_ways_of_writing_are_read(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    home.env_file.write_text(ENV)
    home.env_file.chmod(0o600)

    secrets = open_secrets(home, {})

    found = {name: secrets.get(name) for name in secrets.kept}
    assert found == {"OPENAI_API_KEY": 'a b"c', "PLAIN": "value", "HASH": "a#b", "SINGLE": '$x "y" #z'}
    assert secrets.warnings == (f"{home.env_file}:7: this line is not NAME=value; it is skipped.",)


def test_the_file_comes_before_the_environment(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    home.env_file.write_text("A=file\n")

    secrets = open_secrets(home, {"A": "outside", "B": "outside"})

    assert [secrets.get(name) for name in "ABC"] == ["file", "outside", ""]
    assert [secrets.source(name) for name in "ABC"] == [".env", "environment", ""]
    assert secrets.kept == ("A",)


def test_tokens_of_sign_ins_are_hidden_those_of_the_file_and_those_given_out_later(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    (home.root / "auth.json").write_text('{"sign_ins": {"x": {"access": "first-opaque", "refresh": "again-opaque"}}}')
    secrets = open_secrets(home, {})
    assert secrets.redact("first-opaque again-opaque later-opaque") == "[secret SIGN_IN] [secret SIGN_IN] later-opaque"

    secrets.hide("SIGN_IN", "later-opaque", "")

    assert secrets.redact("first-opaque later-opaque") == "[secret SIGN_IN] [secret SIGN_IN]"


def test_a_file_that_others_can_read_is_told(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    home.env_file.write_text("A=1\n")
    home.env_file.chmod(0o644)

    assert "can be read by others (mode 644)" in open_secrets(home).warnings[0]


def test_writing_keeps_the_other_lines_and_closes_the_file(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    home.env_file.write_text("# mine\nA=1\nB=2\nA=3")
    home.env_file.chmod(0o644)
    secrets = open_secrets(home, {})

    secrets.set("A", "new value")
    secrets.set("C", "x")

    assert home.env_file.read_text() == "# mine\nA='new value'\nB=2\nC=x\n"
    assert home.env_file.stat().st_mode & 0o777 == 0o600
    assert secrets.get("A") == "new value"
    assert secrets.unset("B")
    assert not secrets.unset("B")
    assert open_secrets(home, {}).kept == ("A", "C")


@settings(max_examples=40, deadline=None)
@example(value="'\\")
@given(value=st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])))
def test_any_value_is_read_back_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, value: str) -> None:
    home = home_at(tmp_path_factory.mktemp("home"))

    open_secrets(home, {}).set("A", value)

    assert open_secrets(home, {}).get("A") == value


def test_a_shell_reads_the_same_value(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    value = 'it\'s "quoted" $HOME `x` \\ #1'
    open_secrets(home, {}).set("A", value)

    done = subprocess.run(
        ["sh", "-c", f'. {home.env_file}; printf %s "$A"'], capture_output=True, text=True, check=True
    )

    assert done.stdout == value


@pytest.mark.parametrize(("name", "value"), [("a b", "x"), ("1A", "x"), ("", "x"), ("A", "x\ny"), ("A", "x\0")])
def test_what_no_env_file_can_hold_is_refused(tmp_path: Path, name: str, value: str) -> None:
    home = home_at(tmp_path)

    with pytest.raises(ConfigError):
        open_secrets(home, {}).set(name, value)

    assert not home.env_file.exists()


def test_a_file_that_is_no_text_is_told_and_not_written(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    home.env_file.write_bytes(b"A=\xff")

    with pytest.raises(HomeError, match="not UTF-8"):
        open_secrets(home, {})


def test_known_values_are_hidden_the_longest_first(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    home.env_file.write_text("LONG=abcdefgh-more\nSHORT=abcdefgh\nTINY=yes\n")
    secrets = open_secrets(home, {})

    hidden = secrets.redact("say abcdefgh-more, abcdefgh and yes")

    assert hidden == "say [secret LONG], [secret SHORT] and yes"


def test_values_of_the_environment_are_hidden_where_their_name_tells_or_they_were_asked_for(tmp_path: Path) -> None:
    variables = {"SOME_API_KEY": "told-by-name", "ODD": "asked-for-value", "PATH": "/usr/bin:/bin"}
    secrets = open_secrets(home_at(tmp_path), variables)
    secrets.get("ODD")

    hidden = secrets.redact("told-by-name asked-for-value /usr/bin:/bin")

    assert hidden == "[secret SOME_API_KEY] [secret ODD] /usr/bin:/bin"


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-" + "a1B2c3D4" * 3,
        "sk-ant-api03-" + "x1Y2z3W4" * 3,
        "ghp_" + "a" * 36,
        "github_pat_" + "a" * 30,
        "AKIA" + "ABCDEFGH12345678",
        "xoxb-123456789012-abc",
        "AIza" + "b" * 35,
        "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeKKF2QT4",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_what_looks_like_a_key_is_hidden(tmp_path: Path, key: str) -> None:
    secrets = open_secrets(home_at(tmp_path), {})

    assert secrets.redact(f"key={key}.") == "key=[secret]."


def test_ordinary_words_are_left_alone(tmp_path: Path) -> None:
    secrets = open_secrets(home_at(tmp_path), {})
    text = "risk-assessment-of-the-large-system task-sk-1 AKIA ghp_x commit 4f1e2d3c4b5a69788796a5b4c3d2e1f0a9b8c7d6"

    assert secrets.redact(text) == text


def test_the_values_are_not_in_its_own_description(tmp_path: Path) -> None:
    secrets = open_secrets(home_at(tmp_path), {"A": "very-secret-value"})
    secrets.set("B", "another-secret")

    assert "secret-value" not in repr(secrets)
    assert "another-secret" not in repr(secrets)


def test_a_secret_is_hidden_also_as_json_and_addresses_write_it(tmp_path):
    secrets = open_secrets(home_at(tmp_path), {"A_TOKEN": 'half"and/half'})

    assert secrets.redact(r"half\"and/half half%22and%2Fhalf") == "[secret A_TOKEN] [secret A_TOKEN]"


def test_a_mask_covers_values_and_shapes_and_changes_no_length(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    home.env_file.write_text("MY_TOKEN=hunter2-hunter2\n")
    home.env_file.chmod(0o600)
    secrets = open_secrets(home, {})

    assert secrets.mask("a hunter2-hunter2 b") == "a [secret]******* b"
    assert secrets.mask("a sk-proj-a1B2c3D4e5F6g7H8 b") == f"a [secret]{16 * chr(42)} b"
    assert secrets.mask("words") == "words"


def test_other_values_are_taken_over_and_those_of_before_stay_hidden_for_long(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    secrets = open_secrets(home, {})
    secrets.set("A_KEY", "value-number-0")
    for number in range(1, 70):
        other = open_secrets(home, {})
        other.set("A_KEY", f"value-number-{number}")
        assert secrets.differs(other) == ("A_KEY",)
        secrets.become(other)

    assert secrets.get("A_KEY") == "value-number-69"
    assert secrets.redact("value-number-69 value-number-68") == "[secret A_KEY] [secret A_KEY]"
    assert secrets.redact("value-number-0") == "value-number-0"
    assert secrets.differs(open_secrets(home, {})) == ()


VALUE = "hunter2/Pa55+word&more=yes"
HIDES = Redaction({VALUE: "PASS"})


@pytest.mark.parametrize(
    "form",
    [
        VALUE,
        quote(VALUE, safe=""),
        VALUE.encode().hex(),
        base64.b64encode(VALUE.encode()).decode(),
        base64.b64encode(f"user:{VALUE}".encode()).decode(),
        base64.b64encode(f"x{VALUE}y".encode()).decode(),
        base64.urlsafe_b64encode(f"ab{VALUE}".encode()).decode(),
        base64.encodebytes(f"{'a' * 50}{VALUE}".encode()).decode(),
        VALUE.encode().hex().upper(),
        VALUE.encode().hex(" "),
        VALUE[::-1],
        f"{VALUE[:10]}\n    {VALUE[10:]}",
        f"{VALUE[:10]}\x1b[0m{VALUE[10:]}",
    ],
)
def test_every_form_of_a_secret_is_hidden(form: str) -> None:
    shown = HIDES.hide(f"before {form} after")

    assert "[secret PASS]" in shown
    assert form not in shown
    assert shown.startswith("before ")


@pytest.mark.parametrize("cut", [VALUE[:CUT], VALUE[: CUT + 5], VALUE[-CUT:], VALUE[-CUT - 5 :]])
def test_what_was_cut_off_is_hidden_too(cut: str) -> None:
    assert HIDES.hide(f"a {cut}") == "a [secret PASS]"


def test_short_values_and_other_words_stay() -> None:
    assert Redaction({"short": "S"}).hide("a short text") == "a short text"
    assert HIDES.hide("hunter and more=yes") == "hunter and more=yes"


@pytest.mark.parametrize(
    "text",
    [
        f"a {VALUE} b",
        base64.b64encode(f"x{VALUE}".encode()).decode(),
        f"{VALUE[:6]}\n{VALUE[6:]}",
        f"cut off {VALUE[:-2]}",
        f"ü {VALUE} \udcff {VALUE}",
    ],
)
def test_a_mask_hides_what_is_hidden_and_has_as_many_bytes(text: str) -> None:
    masked = HIDES.hide(text, as_long)

    assert HIDES.hide(masked) == masked != text
    assert len(masked.encode("utf-8", "surrogateescape")) == len(text.encode("utf-8", "surrogateescape"))


def test_a_label_is_filled_up_to_the_bytes_of_what_it_hides() -> None:
    assert as_long("[secret A]", "12345678") == "[secret]"
    assert as_long("[secret A]", "1234567") == "*******"
    assert as_long("[secret A]", "üüüüüü") == "[secret A]**"


@given(
    st.sampled_from([*_forms(VALUE), VALUE[:CUT], VALUE[-CUT:], "shorter89", "more of other words than secrets"]),
    st.integers(0, 16),
    st.sampled_from(["", "\n", "ü", "\udcff", "\r\n"]),
    st.integers(0, 30),
)
def test_a_large_text_is_hidden_as_a_small_one(form: str, before: int, between: str, at: int) -> None:
    both = Redaction({VALUE: "PASS", "shorter89": "SHORT"})
    text = f"{'x' * before}{form[:at]}{between}{form[at:]}y"

    assert both.hide(" " * LARGE + text, as_long) == " " * LARGE + both.hide(text, as_long)


def test_how_long_it_takes_to_find_nothing_does_not_grow_with_the_secrets() -> None:
    text = "2026-01-01 12:00:00 INFO what happened in this module is of no interest\n" * 30_000

    def seconds(count: int) -> float:
        hides = Redaction({hashlib.sha256(b"%d" % number).hexdigest(): f"K{number}" for number in range(count)})
        return min(timeit.repeat(lambda: hides.hide(text), timer=time.process_time, number=1, repeat=5))

    assert seconds(32) < 3 * seconds(1)
