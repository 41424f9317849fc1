"""The filter of connections, step by step as the kernel goes it, for both kinds of machine."""

from __future__ import annotations

import errno
import struct

import pytest

from hermes_agent.sandbox.connect_filter import (
    ALLOW,
    AND,
    AT_LEAST,
    EQUAL,
    FAST_OPEN,
    HAS,
    LOAD,
    MACHINES,
    NOTIFY,
    REFUSE,
    RETURN,
    Calls,
    program,
)


def answer(calls: Calls, number: int, *arguments: int, architecture: int = 0) -> int:
    """What the filter says of this system call."""
    filled = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number, architecture or calls.architecture, 0, *filled)
    loaded, at, steps = 0, 0, program(calls)
    while True:
        code, yes, no, value = steps[at]
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


@pytest.mark.parametrize("machine", MACHINES)
def test_connections_are_handed_over_and_everything_else_of_a_program_goes_on(machine: str) -> None:
    calls = MACHINES[machine]

    assert answer(calls, calls.connect) == answer(calls, calls.listen) == NOTIFY
    assert answer(calls, 0) == answer(calls, calls.sends[0][0], 3, 0, 0, 0x4000) == ALLOW
    for allowed in ((1, 1, 0), (1, 5, 0), (2, 1 | 0o2004000, 6), (10, 1, 0), (16, 3, 0)):
        assert answer(calls, calls.socket, *allowed) == ALLOW, allowed
    for handed in ((2, 2, 0), (10, 2 | 0o4000, 17), (2, 3, 1)):
        assert answer(calls, calls.socket, *handed) == NOTIFY, handed


@pytest.mark.parametrize("machine", MACHINES)
def test_ways_around_it_are_refused(machine: str) -> None:
    calls = MACHINES[machine]

    for refused in ((1, 2, 0), (2, 1, 262), (16, 3, 4)):
        assert answer(calls, calls.socket, *refused) == REFUSE | errno.EACCES, refused
    for family in (0, 3, 4, 9, 17, 21, 30, 31, 38, 40, 41, 42, 43, 44, 1 << 31):
        assert answer(calls, calls.socket, family, 1, 0) == REFUSE | errno.EAFNOSUPPORT, family
    for number, place in calls.sends:
        flags = [0] * 6
        flags[place] = FAST_OPEN | 0x4000
        assert answer(calls, number, *flags) == REFUSE | errno.EOPNOTSUPP
    for number in (425, 426, 427, 0x40000000 | calls.socket):
        assert answer(calls, number) == REFUSE | errno.ENOSYS
    assert answer(calls, calls.connect, architecture=0x40000003) == REFUSE | errno.ENOSYS
