"""The environment that commands see: the person's own without its secrets, set so that nothing waits for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

SECRET = re.compile(
    r"(^|_)(API_?KEYS?|KEY|TOKENS?|SECRETS?|PASS(WORD|WD|PHRASE)?|CREDENTIALS?|COOKIE|DSN)(_|$)|^HERMES_", re.IGNORECASE
)
# Pagers and prompts would wait for a person who is not there.
QUIET = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}


def scrubbed(variables: Mapping[str, str], passthrough: Iterable[str] = ()) -> dict[str, str]:
    """The variables without those whose names look like secrets, save the ones in `passthrough`."""
    allowed = set(passthrough)
    kept = {name: value for name, value in variables.items() if name in allowed or not SECRET.search(name)}
    return {**kept, **QUIET}
