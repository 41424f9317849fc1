<<<<<<< HEAD
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
=======
"""The one place where modules are loaded when they are used instead of at start."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def late(where: str) -> Any:  # noqa: ANN401 - what a name in another module is cannot be said here
    """What `"package.module:attribute"` names; `"package.module"` alone is the module itself."""
    module, _, attribute = where.partition(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found
>>>>>>> main
