"""Lazy loading of modules by `"module:attr"`, and the dependencies that their factories take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, TypeVar

from hermes_agent.core.errors import ConfigError

T = TypeVar("T")


def late(where: str) -> Any:  # noqa: ANN401 - what a name in another module is cannot be said here
    """Import what `"package.module:attribute"` names; `"package.module"` alone is the module itself."""
    module, _, attribute = where.partition(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found


class Needs:
    """Dependency container: gives a value by its class or Protocol (`Home`, `Store`, `Clock`, a section of the
    settings).

    A factory that a table names as `"module:attr"` takes it, asks for what it uses, and is called once.
    """

    def __init__(self, values: Mapping[type, object]) -> None:
        self._values: dict[type, Any] = dict(values)
        self._made: dict[str, Any] = {}

    def put(self, kind: type, value: object) -> None:
        """Register a value."""
        self._values[kind] = value

    def get(self, kind: type[T]) -> T:
        """The value of that class. Raises `ConfigError` where it is missing."""
        if kind not in self._values:
            raise ConfigError(f"There is no {kind.__name__} here. `Needs.later` asks for it when it is first used.")
        found: T = self._values[kind]
        return found

    def later(self, kind: type[T]) -> Callable[[], T]:
        """A function that gives the value when called; it may be registered later."""
        return partial(self.get, kind)

    def made(self, where: str) -> Any:  # noqa: ANN401 - as `late`
        """The result of the named factory; made once."""
        if where not in self._made:
            self._made[where] = late(where)(self)
        return self._made[where]
