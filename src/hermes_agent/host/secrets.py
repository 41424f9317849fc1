"""Secrets (keys and tokens) from `.env` and the process environment, and their redaction in texts."""

from __future__ import annotations

import base64
import json
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import field
from urllib.parse import quote, quote_plus

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ConfigError, HomeError
from hermes_agent.host.locks import locked
from hermes_agent.host.paths import Home, environment, read_small, write_private
from hermes_agent.host.secret_rules import Put, hide_keys

SHORTEST_HIDDEN = 8
LARGE = 1 << 12
"""Characters from which on a text is first looked through for all secrets at once."""
CUT = 12
"""Characters of a secret's beginning or end that give it away where the rest was cut off."""
BROKEN = r"[\r\n]+[ \t]*|\x1b\[[0-9;]*[A-Za-z]"
"""What may stand inside a secret: the end of a line, and a change of colours."""
WORD = 8
"""Bytes of the words by which a large text is first looked through for secrets."""
MARKER = re.compile(r"\[secret( [A-Za-z_]\w*)?\]|\[redacted\]", re.IGNORECASE)
"""What stands in place of a secret."""


def as_long(label: str, hidden: str) -> str:
    """The label padded to as many bytes as the hidden text; a shorter one where it does not fit."""
    size = len(hidden.encode("utf-8", "surrogateescape"))
    fits = next((words for words in (label, "[secret]") if len(words) <= size), "")
    return fits.ljust(size, "*")


class Redaction:
    """Redacts the values of `secrets` (value to name) in texts. Values shorter than 8 characters are not redacted."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        forms: dict[str, str] = {}
        for value, name in secrets.items():
            if len(value) >= SHORTEST_HIDDEN:
                forms.update(dict.fromkeys(_forms(value), f"[secret {name}]"))
        self._forms = sorted(forms.items(), key=lambda form: -len(form[0]))
        labels = dict.fromkeys(label for _, label in self._forms)
        self._cuts = [_Cut(label, [form for form, named in self._forms if named == label]) for label in labels]
        bare = [re.sub(r"[ \t\r\n]", "", form) for form in forms]
        ends = [part.encode("utf-8", "surrogatepass") for form in bare for part in {form[:CUT], form[-CUT:]}]
        self._short = [part for part in ends if len(part) < CUT]
        self._words = {word for part in ends for word in _words(part)}

    def hide(self, text: str, put: Put = lambda label, _: label) -> str:
        """The text without the secrets; `put` makes the replacement from a label and the secret."""
        if len(text) >= LARGE and not self._may_be_in(text):
            return text
        for form, label in self._forms:
            if form in text:
                text = text.replace(form, put(label, form))
        text = self._without_wrapped(text, put)
        for cut in self._cuts:
            text = cut.without_rest(text, put)
        return text

    def _may_be_in(self, text: str) -> bool:
        """Whether the end of a secret may be in a text: one pass, however many secrets there are. Each end has `CUT`
        bytes in a row, spaces aside, and so a word that begins at a multiple of four."""
        raw = text.encode("utf-8", "surrogatepass").translate(None, b" \t\r\n")
        views = (memoryview(raw)[start : len(raw) - (len(raw) - start) % WORD].cast("Q") for start in (0, WORD // 2))
        return any(form in raw for form in self._short) or any(not self._words.isdisjoint(view) for view in views)

    def _without_wrapped(self, text: str, put: Put) -> str:
        """Also where lines were broken inside, as `base64` does every 76 characters, and set in, or colours changed."""
        joined = re.sub(BROKEN, "", text) if "\n" in text or "\x1b" in text else ""
        for form, label in self._forms:
            if joined and form in joined:
                for wrapped in set(re.findall(f"(?:{BROKEN})*".join(map(re.escape, form)), text)):
                    text = text.replace(wrapped, put(label, wrapped))
        return text


def _forms(value: str) -> Iterable[str]:
    raw = value.encode()
    yield from {value, value[::-1], shlex.quote(value)}
    yield from {raw.hex(), raw.hex().upper(), raw.hex(" "), "".join(f"\\x{byte:02x}" for byte in raw)}
    yield from {quote(value, safe=""), quote_plus(value), quote(value)}
    yield from {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for shift in range(3):  # Where in a longer text it begins decides how it looks.
            text = encode(b"\0" * shift + raw).decode()
            first = (0, 2, 3)[shift]
            last = len(text) if (shift + len(raw)) % 3 == 0 else len(text.rstrip("=")) - 1
            if last - first >= SHORTEST_HIDDEN:
                yield text[first:last]


def _words(form: bytes) -> Iterable[int]:
    """Each eight bytes of it, as a number of this machine."""
    return (int.from_bytes(form[at : at + WORD], sys.byteorder) for at in range(len(form) - WORD + 1))


class _Cut:
    """Redacts a secret that is cut off at the beginning or end of a text."""

    def __init__(self, label: str, forms: list[str]) -> None:
        self._label = label
        self._parts: dict[str, list[str]] = {}
        for form in forms:
            if len(form) >= CUT + 4:
                self._parts.setdefault(form[:CUT], []).append(form)
                self._parts.setdefault(form[-CUT:], []).append(form)

    def without_rest(self, text: str, put: Put) -> str:
        """The text without such fragments."""
        for part, forms in self._parts.items():
            at = text.find(part)
            while at >= 0:
                begin = min(_back(text, form, at) for form in forms)
                end = max(_forth(text, form, at) for form in forms)
                stands = put(self._label, text[begin:end])
                text = f"{text[:begin]}{stands}{text[end:]}"
                at = text.find(part, begin + len(stands))
        return text


def _forth(text: str, form: str, at: int) -> int:
    """Where a form that begins at `at` stops standing in the text."""
    end = at + CUT
    while form.startswith(text[at:end]) and end < len(text) and end - at < len(form) and text[end] == form[end - at]:
        end += 1
    return end


def _back(text: str, form: str, at: int) -> int:
    """Where a form whose end was found at `at` begins to stand in the text."""
    end = at + CUT
    while form.endswith(text[at:end]) and at and end - at < len(form) and text[at - 1] == form[at - end - 1]:
        at -= 1
    return at


NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LINE = r"\s*(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*=\s*(?P<value>.*?)\s*"
QUOTED = r"""'(?P<single>[^']*)'|"(?P<double>(?:[^"\\]|\\.)*)\""""
TOKENS = r'"(?:access|refresh)": ?"([^"\\]+)"'
"""Tokens as `auth.json` holds them."""
TELLING = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$")
FORMER = 64
"""Values that are no longer in `.env` and still hidden: what was said before may be said again."""


@dataclass(slots=True, kw_only=True)
class Secrets:
    """The secrets of one home. `.env` takes precedence over the process environment. Redacted are every value of
    `.env`, every value that was requested, and environment variables with telling names. `warnings` are problems of the
    file (a line that is no `NAME=value`, a mode that lets others read it)."""

    home: Home
    variables: Mapping[str, str] = field(default_factory=environment, repr=False)
    warnings: tuple[str, ...] = ()
    _kept: dict[str, str] = field(default_factory=dict, repr=False)
    _asked: set[str] = field(default_factory=set, repr=False)
    _redaction: Redaction | None = field(default=None, repr=False)
    _former: dict[str, str] = field(default_factory=dict, repr=False)

    def become(self, other: Secrets) -> None:
        """Adopt the values of a later reading of the same home; the previous ones are still redacted."""
        for name, value in self._kept.items():
            if value and other._kept.get(name) != value:
                self._former.pop(value, None)
                self._former[value] = name
        while len(self._former) > FORMER:
            del self._former[next(iter(self._former))]
        self._kept, self.warnings = dict(other._kept), other.warnings
        self._redaction = None

    def hide(self, name: str, *values: str) -> None:
        """Redact these from now on, as tokens of a sign-in."""
        if not all(value in self._former for value in values if value):
            self._former.update((value, name) for value in values if value)
            self._redaction = None

    def differs(self, other: Secrets) -> tuple[str, ...]:
        """The names in `.env` with other values in `other`."""
        names = self._kept.keys() | other._kept.keys()
        return tuple(sorted(name for name in names if self._kept.get(name, "") != other._kept.get(name, "")))

    def get(self, name: str) -> str:
        """The secret of this name, empty where there is none."""
        if name not in self._asked:
            self._asked.add(name)
            self._redaction = None
        return self._kept.get(name) or self.variables.get(name, "")

    def source(self, name: str) -> str:
        """The source of the value: `.env`, `environment`, or empty."""
        if self._kept.get(name):
            return ".env"
        return "environment" if self.get(name) else ""

    @property
    def kept(self) -> tuple[str, ...]:
        """The names in `.env` with a value."""
        return tuple(name for name, value in self._kept.items() if value)

    def set(self, name: str, value: str) -> None:
        """Write one secret into `.env`; other lines stay as they are. Raises `ConfigError`, `HomeError`."""
        check_name(name)
        if MARKER.search(value):
            raise ConfigError(f"The value of {name} holds the mark of a hidden secret; the secret itself is needed.")
        if any(sign in value for sign in "\0\n\r"):
            raise ConfigError(f"The value of {name} goes over more than one line; a key stands on one.")
        self._rewrite(name, f"{name}={_quoted(value)}\n")
        self._kept[name] = value
        self._redaction = None

    def unset(self, name: str) -> bool:
        """Remove a secret from `.env`; False where it was not there."""
        if name not in self._kept:
            return False
        self._rewrite(name, "")
        del self._kept[name]
        self._redaction = None
        return True

    def redact(self, text: str) -> str:
        """The text with every known value of at least 8 characters, and everything that looks like a key, replaced."""
        return hide_keys(self._hiding.hide(text), lambda label, _: label, "[secret]")

    def mask(self, text: str) -> str:
        """The same with an unchanged number of bytes: replacements are cut or padded."""
        return hide_keys(self._hiding.hide(text, as_long), as_long, "[secret]")

    @property
    def _hiding(self) -> Redaction:
        if self._redaction is None:
            self._redaction = Redaction(self._values())
        return self._redaction

    def _values(self) -> dict[str, str]:
        outside = [name for name in self.variables if name in self._asked or TELLING.search(name)]
        now = {self._kept.get(name) or self.variables.get(name, ""): name for name in (*outside, *self.kept)}
        return {**self._former, **now}

    def _rewrite(self, name: str, line: str) -> None:
        self.home.ensure()
        with locked(self.home.locks / "env.lock"):
            before = _text(self.home) or ""
            after: list[str] = []
            written = False
            for old in before.splitlines(keepends=True):
                found = re.fullmatch(LINE, old.rstrip("\r\n"))
                if found is None or found["name"] != name:
                    after.append(old if old.endswith("\n") else f"{old}\n")
                elif not written:
                    after.append(line)
                    written = True
            content = "".join(after) + ("" if written else line)
            write_private(self.home.env_file, content.encode())


def check_name(name: str) -> None:
    """Raise `ConfigError` for an invalid name of a secret."""
    if not NAME.fullmatch(name):
        raise ConfigError(f"`{name}` cannot name a secret: use letters, digits and `_`.")


def open_secrets(home: Home, variables: Mapping[str, str] | None = None) -> Secrets:
    """The secrets of a home. Raises `HomeError`."""
    tokens = re.findall(TOKENS, (read_small(home.root / "auth.json") or b"").decode("utf-8", "replace"))
    kept: dict[str, str] = {}
    warnings: list[str] = []
    for number, line in enumerate((_text(home) or "").splitlines(), 1):
        found = re.fullmatch(LINE, line)
        if found:
            kept[found["name"]] = _unquoted(found["value"])
        elif line.strip() and not line.lstrip().startswith("#"):
            warnings.append(f"{home.env_file}:{number}: this line is not NAME=value; it is skipped.")
    warnings += _wide_mode(home)
    return Secrets(
        home=home,
        variables=environment() if variables is None else variables,
        warnings=tuple(warnings),
        _kept=kept,
        _former=dict.fromkeys(tokens, "SIGN_IN"),
    )


def _text(home: Home) -> str | None:
    content = read_small(home.env_file)
    try:
        return None if content is None else content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise HomeError(f"{home.env_file} is not UTF-8: save it as UTF-8.") from error


def _wide_mode(home: Home) -> list[str]:
    try:
        mode = home.env_file.stat().st_mode & 0o777
    except OSError:
        return []
    if not mode & 0o077:
        return []
    return [f"{home.env_file} can be read by others (mode {mode:o}): `chmod 600 {home.env_file}`."]


def _unquoted(value: str) -> str:
    if quoted := re.match(QUOTED, value):
        return re.sub(r"\\([\"\\$`])", r"\1", quoted["double"]) if quoted["single"] is None else quoted["single"]
    return re.split(r"\s#", value, maxsplit=1)[0].rstrip()


def _quoted(value: str) -> str:
    """The value so that this program and a shell both read it back as it is."""
    if re.fullmatch(r"[A-Za-z0-9_./:@%+=,-]*", value):
        return value
    if "'" not in value:
        return f"'{value}'"
    escaped = re.sub(r"([\"\\$`])", r"\\\1", value)
    return f'"{escaped}"'
