"""What the filters refuse is refused, what programs need goes on, and other ways to call the kernel are closed."""

from __future__ import annotations

import errno
import struct

import pytest

from hermes_agent.sandbox.network import CALLS, FAST_OPEN, SENDS, steps
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
    program,
)

GOES_ON, EPERM, ENOSYS = 0x7FFF_0000, 0x0005_0001, 0x0005_0026
NUMBERS = {"read": (0, 63), "mount": (165, 40), "bpf": (321, 280), "keyctl": (250, 219), "clone3": (435, 435)}
NUMBERS |= {"io_uring_setup": (425, 425), "unshare": (272, 97), "clone": (56, 220), "ioctl": (16, 29)}
NUMBERS |= {"ptrace": (101, 117), "personality": (135, 92), "socket": (41, 198), "process_vm_writev": (311, 271)}


def decide(code: bytes, number: int, arguments: tuple[int, ...] = (), architecture: int = MACHINES["x86_64"]) -> int:
    """What the kernel would do: the filter, run."""
    data = struct.pack("=IIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    steps = [struct.unpack_from("=HBBI", code, at) for at in range(0, len(code), 8)]
    at = value = 0
    while True:
        kind, yes, no, operand = steps[at]
        at += 1
        match kind:
            case 0x20:
                (value,) = struct.unpack_from("=I", data, operand)
            case 0x54:
                value &= operand
            case 0x15:
                at += yes if value == operand else no
            case 0x35:
                at += yes if value >= operand else no
            case 0x06:
                return operand


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("call", "arguments", "decision"),
    [
        ("read", (), GOES_ON),
        ("mount", (), EPERM),
        ("bpf", (), EPERM),
        ("keyctl", (), EPERM),
        ("io_uring_setup", (), EPERM),
        ("unshare", (), EPERM),
        ("process_vm_writev", (), EPERM),
        ("clone3", (), ENOSYS),
        ("clone", (0x0120_0011,), GOES_ON),
        ("clone", (0x003D_0F00,), GOES_ON),
        ("clone", (0x1000_0011,), EPERM),
        ("clone", (0x0002_0000,), EPERM),
        ("ioctl", (0, 0x5401), GOES_ON),
        ("ioctl", (0, 0x5412), EPERM),
        ("ioctl", (0, 0xFFFF_FFFF_0000_5412), EPERM),
        ("ptrace", (0, 0), GOES_ON),
        ("ptrace", (16, 77), GOES_ON),
        ("ptrace", (16, 1), EPERM),
        ("personality", (0xFFFF_FFFF,), GOES_ON),
        ("personality", (0x0040_0000,), EPERM),
        ("socket", (1, 1), GOES_ON),
    ],
)
def test_a_call_is_decided(machine: str, call: str, arguments: tuple[int, ...], decision: int) -> None:
    number = NUMBERS[call][list(MACHINES).index(machine)]

    assert decide(program(machine=machine), number, arguments, MACHINES[machine]) == decision


@pytest.mark.parametrize(
    ("sockets", "unix", "inet"), [("all", GOES_ON, GOES_ON), ("inet", EPERM, GOES_ON), ("none", EPERM, EPERM)]
)
def test_sockets_are_those_that_are_named(sockets: str, unix: int, inet: int) -> None:
    code = program(sockets=sockets, machine="x86_64")

    assert (decide(code, 41, (1, 1)), decide(code, 41, (2, 1))) == (unix, inet)


def test_other_sets_of_numbers_are_closed() -> None:
    code = program(machine="x86_64")

    assert decide(code, 0x4000_0000 + 1) == EPERM
    assert decide(code, 4, (), 0x4000_0003) == EPERM
    assert program(machine="riscv64") == b""


def answer(machine: str, number: int, *arguments: int, architecture: int = 0) -> int:
    """What the filter says of this system call."""
    filled = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number, architecture or MACHINES[machine], 0, *filled)
    loaded, at, rows = 0, 0, [*head(machine), *steps(machine), ALLOWED]
    while True:
        code, yes, no, value = rows[at]
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
