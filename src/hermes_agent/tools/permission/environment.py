"""The part of an environment that decides what the words of a command mean."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache

import msgspec

DECISIVE = (
    r"(?i)PATH|HOME|SHELL|IFS|ENV|BASH_ENV|CDPATH|GLOBIGNORE|(LD|DYLD|PYTHON|PERL5?|RUBY|NODE|GIT|DOCKER|KUBE|AWS|JAVA)_?\w*"
    r"|\w+_PROXY|\w+_HOST|\w+_URL"
)


def fingerprint(variables: Mapping[str, str], *mentioned: str) -> str:
    """A hash over the variables that decide which programs run and where they go, and over those that are
    `mentioned` in the command. Others (the terminal's size, the login) change from day to day and decide nothing."""
    names = {name for text in mentioned for name in re.findall(r"\$\{?(\w+)", text)}
    kept = {name: value for name, value in variables.items() if _decides(name) or name in names}
    return hashlib.sha256(msgspec.json.encode(kept, order="sorted")).hexdigest()[:16]


@lru_cache(maxsize=1000)
def _decides(name: str) -> bool:
    return re.fullmatch(DECISIVE, name) is not None
