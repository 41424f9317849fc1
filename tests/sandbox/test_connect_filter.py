"""The filter of connections, step by step as the kernel goes it, for both kinds of machine."""

from __future__ import annotations

import errno
import struct

import pytest

from hermes_agent.sandbox.connect_filter import CALLS, FAST_OPEN, SENDS, steps
from hermes_agent.sandbox.seccomp import (
    ALLOW,
    ALLOWED,
    AND,
    AT_LEAST,
    EQUAL,
    ERROR,
    HAS,
    LOAD,
    MACHINES,
    NOTIFY,
    RETURN,
    head,
    numbers,
)


def answer(machine: str, number: int, *arguments: int, architecture: int = 0) -> int:
    """What the filter says of this system call."""
    filled = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number, architecture or MACHINES[machine], 0, *filled)
    loaded, at, program = 0, 0, [*head(machine), *steps(machine), ALLOWED]
    while True:
        code, yes, no, value = program[at]
        at += 1
        match code:
            case 0x20 if code == LOAD:
                (loaded,) = struct.unpack_from("=I", data, value)
            case 0x54 if code == AND:
                loaded &= value
            case 0x06 if code == RETURN:
                return value
            case _:
                held = {EQUAL: loaded == value, AT_LEAST: loaded >= value, HAS: bool(loaded & value)}[code]
                at += yes if held else no


def sends(machine: str) -> list[tuple[int, int]]:
    """The numbers of calls that connect, with the place of their flags."""
    return [(number, place) for row, place in SENDS.items() for number in numbers(row, machine).values()]


@pytest.mark.parametrize("machine", MACHINES)
def test_connections_are_handed_over_and_everything_else_of_a_program_goes_on(machine: str) -> None:
    calls = numbers(CALLS, machine)

    assert answer(machine, calls["connect"]) == answer(machine, calls["listen"]) == NOTIFY
    assert answer(machine, 0) == answer(machine, sends(machine)[0][0], 3, 0, 0, 0x4000) == ALLOW
    for allowed in ((1, 1, 0), (1, 5, 0), (2, 1 | 0o2004000, 6), (10, 1, 0), (16, 3, 0)):
        assert answer(machine, calls["socket"], *allowed) == ALLOW, allowed
    for handed in ((2, 2, 0), (10, 2 | 0o4000, 17), (2, 3, 1)):
        assert answer(machine, calls["socket"], *handed) == NOTIFY, handed


@pytest.mark.parametrize("machine", MACHINES)
def test_ways_around_it_are_refused(machine: str) -> None:
    calls = numbers(CALLS, machine)

    for refused in ((1, 2, 0), (2, 1, 262), (16, 3, 4)):
        assert answer(machine, calls["socket"], *refused) == ERROR | errno.EACCES, refused
    for family in (0, 3, 4, 9, 17, 21, 30, 31, 38, 40, 41, 42, 43, 44, 1 << 31):
        assert answer(machine, calls["socket"], family, 1, 0) == ERROR | errno.EAFNOSUPPORT, family
    for number, place in sends(machine):
        flags = [0] * 6
        flags[place] = FAST_OPEN | 0x4000
        assert answer(machine, number, *flags) == ERROR | errno.EOPNOTSUPP
    if machine == "x86_64":
        assert answer(machine, 0x40000000 | calls["socket"]) == ERROR | errno.EPERM
    assert answer(machine, calls["connect"], architecture=0x40000003) == ERROR | errno.EPERM
