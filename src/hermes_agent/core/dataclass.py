"""`dataclass`, as the standard library has it, at a third of the time that it takes to make a class.

The standard one compiles six functions for each frozen class; two hundred of them were a quarter of the time until the
first request. Here only `__init__` is compiled: comparing, hashing and showing are shared, and that a frozen class is
not assigned to is left to the type checker. Everything else (`fields`, `replace`, `match`, slots) is as it was.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen=False, slots=False, kw_only=False):
        """A decorator as `dataclasses.dataclass`, for the options that this project uses."""
        made = dataclasses.dataclass(slots=slots, kw_only=kw_only, eq=not frozen, repr=False)

        def decorate(cls):
            cls.__doc__ = cls.__doc__ or cls.__name__  # otherwise one is made of the signature, which takes longest
            own = {"__repr__", *(("__eq__", "__hash__") if frozen else ())} - vars(cls).keys()
            decorated = _without_search(cls, made)
            methods = _methods(dataclasses.fields(decorated))
            for name in own:
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
