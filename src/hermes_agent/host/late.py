"""Lazy loading of modules by `"module:attr"`, and the dependencies that their factories take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, TypeVar

from hermes_agent.core.errors import ConfigError

T = TypeVar("T")
LIBRARIES: Mapping[str, str] = {
    "aiosmtplib": "aiosmtplib",
    "asyncpg": "asyncpg",
    "aws_auth": "botocore.auth",
    "aws_errors": "botocore.exceptions",
    "aws_request": "botocore.awsrequest",
    "aws_session": "botocore.session",
    "cronsim": "cronsim",
    "ctypes": "ctypes",
    "docx": "docx",
    "eddsa": "Crypto.Signature.eddsa",
    "elliptic_curves": "Crypto.PublicKey.ECC",
    "google_auth": "google.auth",
    "httpx2": "httpx2",
    "imap_tools": "imap_tools",
    "lexbor": "selectolax.lexbor",
    "markdown_it": "markdown_it",
    "nio": "nio",
    "openpyxl": "openpyxl",
    "pypdf": "pypdf",
    "ruamel_yaml": "ruamel.yaml",
    "tomllib": "tomllib",
    "tzdata": "tzdata",
    "wcwidth": "wcwidth",
    "websockets": "httpx2.websockets",
    "wsproto": "wsproto",
    "yaml": "yaml",
}
"""The libraries that no start may wait for, by their names as attributes of `libraries`."""


def late(where: str) -> Any:  # noqa: ANN401 - what a name in another module is cannot be said here
    """Import what `"package.module:attribute"` names; `"package.module"` alone is the module itself."""
    module, _, attribute = where.partition(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found


class Libraries:
    """Third-party libraries as attributes (`libraries.yaml.safe_load`), imported when the attribute is read; the
    table `LIBRARIES` maps their names."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as `late`
        return late(LIBRARIES[name])


libraries = Libraries()


class Needs:
    """Dependency container: gives a value by its class or Protocol (`Home`, `Store`, `Clock`, a section of the
    settings). A factory that a table names as `"module:attr"` gets this container as its argument; `made` calls each
    factory once."""

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

    def has_made(self, where: str) -> bool:
        """Whether the named factory was called."""
        return where in self._made
