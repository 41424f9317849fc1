"""Slash commands, written once for every surface: a table of names, each command in a file of its kind."""

from __future__ import annotations

COMMANDS: dict[str, str] = {
    "help": "hermes_agent.app.commands.info:HELP",
    "new": "hermes_agent.app.commands.sessions:NEW",
    "resume": "hermes_agent.app.commands.sessions:RESUME",
    "sessions": "hermes_agent.app.commands.sessions:SESSIONS",
    "branch": "hermes_agent.app.commands.sessions:BRANCH",
    "title": "hermes_agent.app.commands.sessions:TITLE",
    "undo": "hermes_agent.app.commands.sessions:UNDO",
    "rollback": "hermes_agent.app.commands.rollback:ROLLBACK",
    "retry": "hermes_agent.app.commands.sessions:RETRY",
    "continue": "hermes_agent.app.commands.runs:CONTINUE",
    "stop": "hermes_agent.app.commands.runs:STOP",
    "steer": "hermes_agent.app.commands.runs:STEER",
    "queue": "hermes_agent.app.commands.runs:QUEUE",
    "approvals": "hermes_agent.app.commands.approvals:APPROVALS",
    "approve": "hermes_agent.app.commands.approvals:APPROVE",
    "deny": "hermes_agent.app.commands.approvals:DENY",
    "yolo": "hermes_agent.app.commands.approvals:YOLO",
    "model": "hermes_agent.app.commands.info:MODEL",
    "tools": "hermes_agent.app.commands.info:TOOLS",
    "status": "hermes_agent.app.commands.info:STATUS",
    "restart": "hermes_agent.app.commands.restart:RESTART",
    "cost": "hermes_agent.app.commands.cost:COST",
    "usage": "hermes_agent.app.commands.cost:USAGE",
    "memory": "hermes_agent.app.commands.memory:MEMORY",
    "skills": "hermes_agent.app.commands.skills:SKILLS",
    "learn": "hermes_agent.app.commands.learn:LEARN",
    "bundles": "hermes_agent.app.commands.skills:BUNDLES",
    "history": "hermes_agent.app.commands.history:HISTORY",
    "context": "hermes_agent.app.commands.context:CONTEXT",
    "compress": "hermes_agent.app.commands.context:COMPRESS",
    "pin": "hermes_agent.app.commands.context:PIN",
    "unpin": "hermes_agent.app.commands.context:UNPIN",
}
"""Name of a command -> where it is."""
