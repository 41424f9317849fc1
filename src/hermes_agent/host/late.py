"""The one place where code is loaded by its name, so that what is heavy or seldom costs nothing until it is used."""

from __future__ import annotations

import importlib
from typing import Any


def late(where: str) -> Any:  # noqa: ANN401 - what a name in a table stands for is known to the table's reader
    """The module `package.module`, or what `package.module:attribute` names in it.

    The tables of extensions hold such texts. Raises `ImportError` or `AttributeError` where there is no such thing.
    """
    module, _, attribute = where.partition(":")
    found: Any = importlib.import_module(module)
    for name in filter(None, attribute.split(".")):
        found = getattr(found, name)
    return found
