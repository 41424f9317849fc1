"""The one place where modules are loaded when they are used instead of at start."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def late(where: str) -> Any:  # noqa: ANN401 - what a name in another module is cannot be said here
    """What `"package.module:attribute"` names; `"package.module"` alone is the module itself."""
    module, _, attribute = where.partition(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found
