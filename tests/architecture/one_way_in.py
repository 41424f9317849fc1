"""Which file may use what ruff's TID251 bans everywhere else, and why.

ruff can only switch the whole ban off for a file; these tables say what the file was let off for.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Exemption:
    """`names` may be used in the files that match `where`, a pattern as in pyproject.toml."""

    where: str
    names: frozenset[str]
    reason: str


def may(where: str, *names: str, because: str) -> Exemption:
    return Exemption(where=where, names=frozenset(names), reason=because)


EXEMPTIONS = (
    may(
        "src/hermes_agent/core/{clock,dataclass}.py",
        "time.time",
        "dataclasses.dataclass",
        because="the one is the machine's clock, the other makes the standard library's dataclasses",
    ),
    may(
        "src/hermes_agent/__init__.py",
        "importlib.import_module",
        because="`from hermes_agent import Agent` loads the library, and importing the package loads nothing",
    ),
    may(
        "src/hermes_agent/host/{config,paths}.py",
        "os.environ",
        because="the three names of ours and the providers' keys are read here and passed on as values",
    ),
    may(
        "src/hermes_agent/host/{locks,logs,secrets,config_edit}.py",
        "fcntl.flock",
        "hermes_agent.host.locks.locked",
        because="the first holds every lock, the log file asks for its own without waiting, and the others change a "
        "small file for a command that has no event loop",
    ),
    may(
        "src/hermes_agent/sandbox/executions.py",
        "fcntl.flock",
        because="the lock of a command that is about to start is never waited for",
    ),
    may(
        "src/hermes_agent/cli/gateway/starting.py",
        "hermes_agent.host.locks.locked",
        because="a command without an event loop starts one gateway at a time",
    ),
    may("src/hermes_agent/host/late.py", "importlib.import_module", because="it loads what the tables name"),
    may(
        "src/hermes_agent/host/process.py",
        "subprocess",
        "asyncio.create_subprocess_exec",
        "os.environ",
        because="it starts every process, in a group of its own, with the environment that a child gets",
    ),
    may("src/hermes_agent/host/tasks.py", "asyncio.create_task", because="it keeps the task and logs its failure"),
    may(
        "src/hermes_agent/store/**",
        "apsw",
        "asyncpg",
        "fcntl.flock",
        "hermes_agent.host.locks.locked",
        because="SQL is spoken here alone, in threads of its own; the lock of a worker is not waited for",
    ),
)

# What a test may never use, and what to do instead.
NEVER_IN_TESTS = {
    "unittest.mock": "pass a fake from hermes_agent.testing, or the real thing",
    "time.sleep": "wait for the thing itself, or move a FakeClock",
    "_pytest.monkeypatch": "take the `monkeypatch` fixture, for the environment and the current folder",
}
