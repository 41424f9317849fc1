"""A drop-in `dataclass` decorator that creates classes several times faster than the standard library's.

The standard one compiles six functions for each frozen class, which took a quarter of the time until the first request.
Here `__init__` alone is compiled, and only for a class with more than `FEW` instances; comparing, hashing and showing
are shared functions. Nothing stops an assignment to a frozen instance at run time: the type checker reports it, and the
tests set `ENFORCED`, which makes it an error. The rest (`fields`, `replace`, `match`, slots) works as usual.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, Any

ENFORCED = False
"""Whether values of frozen classes that are made from now on refuse to be changed."""

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen=False, slots=False, kw_only=False):
        """A decorator as `dataclasses.dataclass`, for the options that this project uses."""
        made = dataclasses.dataclass(slots=slots, kw_only=kw_only, init=False, eq=False, repr=False)

        def decorate(cls):
            cls.__doc__ = cls.__doc__ or cls.__name__  # otherwise one is made of the signature, which takes longest
            given = vars(cls).keys()
            decorated = _without_search(cls, made)
            methods = {"__init__": _late_init(decorated), **_methods(dataclasses.fields(decorated))}
            if not frozen:
                methods["__hash__"] = None
            elif ENFORCED:
                methods |= {"__setattr__": _refuse, "__delattr__": _refuse, "__setstate__": _restore}
            for name in methods.keys() - given:
                setattr(decorated, name, methods[name])
            return decorated

        return decorate


def _without_search(cls: type[object], made: Callable[[type[object]], type[object]]) -> type[object]:
    """Make the class without looking into the words of each annotation for `ClassVar` and the like, where none is."""
    said = inspect.get_annotations(cls)
    if any("Var" in str(words) or "KW_ONLY" in str(words) for words in said.values()):
        return made(cls)
    cls.__annotations__ = dict.fromkeys(said, object)
    decorated = made(cls)
    decorated.__annotations__ = said
    for field in dataclasses.fields(decorated):  # type: ignore[arg-type]  # it was just made one
        field.type = said.get(field.name, field.type)
    return decorated


def _refuse(self: object, name: str, *_value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"{self.__class__.__qualname__}.{name} is not to be changed")


def _restore(self: object, state: tuple[dict[str, object] | None, dict[str, object]] | dict[str, object]) -> None:
    """Fill in what was copied or sent to another process."""
    for values in state if isinstance(state, tuple) else (state,):
        for name, value in (values or {}).items():
            object.__setattr__(self, name, value)


FEW = 8
"""Records of a class that are filled field by field: compiling takes as long as twenty of them."""


def _late_init(cls: type[object]) -> Callable[..., None]:
    """Fills the first records field by field, and compiles the real one for more, or where the values do not fit."""
    made, fields = count(), dataclasses.fields(cls)  # type: ignore[arg-type]  # it is one

    def __init__(self: object, *args: object, **values: object) -> None:  # noqa: N807 - it becomes one
        if args or next(made) >= FEW or not _fill(self, fields, values):
            real = cls.__init__ = _init(cls)  # type: ignore[method-assign]  # also for those that inherit it
            real(self, *args, **values)
        elif told := getattr(self, "__post_init__", None):
            told()

    return __init__


def _fill(self: object, fields: Sequence[dataclasses.Field[Any]], values: dict[str, object]) -> bool:
    """Set every field; False where one has no value, or there are values of none."""
    rest = [field for field in fields if field.name not in values or not field.init]
    usual = {
        each.name: each.default if each.default_factory is dataclasses.MISSING else each.default_factory()
        for each in rest
    }
    if dataclasses.MISSING in usual.values() or len(values) + len(rest) != len(fields):
        return False
    for name, value in (values | usual).items():
        object.__setattr__(self, name, value)
    return True


def _init(cls: type[object]) -> Callable[..., None]:
    by_place, by_name, body = ["self"], ["*"], []
    known: dict[str, object] = {"MISSING": dataclasses.MISSING, "put": object.__setattr__}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]  # it is one
        name, is_made = field.name, field.default_factory is not dataclasses.MISSING  # made anew for each record
        known |= {f"default_{name}": field.default, f"make_{name}": field.default_factory}
        value = f"make_{name}() if {name} is MISSING else {name}" if is_made else name
        if field.init:
            (by_name if field.kw_only else by_place).append(
                f"{name}=default_{name}" if is_made or field.default is not dataclasses.MISSING else name
            )
        else:
            known[name] = field.default
        body.append(f"put(self, {name!r}, {value})" if cls.__setattr__ is _refuse else f"self.{name} = {value}")
    body += ["self.__post_init__()"] * hasattr(cls, "__post_init__")
    head = ", ".join(by_place + by_name * (len(by_name) > 1))
    exec(f"def __init__({head}):\n " + "\n ".join(body or ["pass"]), known)
    made: Callable[..., None] = known["__init__"]  # type: ignore[assignment]  # it was just compiled
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _methods(fields: tuple[dataclasses.Field[object], ...]) -> dict[str, Callable[..., object]]:
    shown = [field.name for field in fields if field.repr]
    compared = [field.name for field in fields if field.compare]
    content = attrgetter(*compared) if compared else lambda _: ()

    def __eq__(self: object, other: object) -> bool:  # noqa: N807 - it becomes one
        return content(self) == content(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: object) -> int:  # noqa: N807 - it becomes one
        return hash(content(self))

    def __repr__(self: object) -> str:  # noqa: N807 - it becomes one
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    return {"__eq__": __eq__, "__hash__": __hash__, "__repr__": __repr__}
