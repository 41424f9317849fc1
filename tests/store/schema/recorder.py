"""Keeps the statements of this version of the store: `pytest -n 0 -p tests.store.schema.recorder tests/store` writes
`tests/store/schema/statements/NNNN.json`, NNNN being the last migration. Run it before you add one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from hermes_agent.store.migrations import newest
from hermes_agent.store.postgres.engine import PostgresTransaction
from hermes_agent.store.sqlite.engine import SqliteTransaction
from hermes_agent.store.sqlite.opening import STEPS

STATEMENTS = Path(__file__).parent / "statements"
STORE = str(STEPS.parent.parent)
found: dict[str, dict[str, Any]] = {}


def noted(dialect: str, sql: str, params: object) -> None:
    """Keep a statement with the first parameters that it was run with."""
    if f"{STORE}/" in sys._getframe(2).f_code.co_filename:
        known = found.setdefault(sql, {"params": params, "dialects": []})
        if dialect not in known["dialects"]:
            known["dialects"].append(dialect)


def pytest_configure() -> None:
    for transaction in (SqliteTransaction, PostgresTransaction):
        for name in ("rows", "row", "run", "holds"):
            plain = getattr(transaction, name)

            def recording(self: Any, sql: str, *params: Any, plain: Any = plain) -> Any:  # noqa: ANN401  any transaction
                noted(self.dialect.value, sql, params)
                return plain(self, sql, *params)

            setattr(transaction, name, recording)
        plain = transaction.many

        def many(self: Any, sql: str, rows: Any, plain: Any = plain) -> Any:  # noqa: ANN401  any transaction
            noted(self.dialect.value, sql, rows[0])
            return plain(self, sql, rows)

        transaction.many = many  # type: ignore[method-assign]  # a recorder for one run


def pytest_unconfigure() -> None:
    rows = [{"sql": sql, **found[sql]} for sql in sorted(found)]
    text = json.dumps(rows, default=lambda value: {"hex": bytes(value).hex()}, ensure_ascii=True)
    STATEMENTS.mkdir(exist_ok=True)
    (STATEMENTS / f"{newest(STEPS):04}.json").write_text(text.replace('}, {"sql"', '},\n{"sql"'), encoding="ascii")
