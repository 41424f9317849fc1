"""Table of all subcommands of `hermes`: where each is implemented, and its summary."""

from __future__ import annotations

COMMANDS: dict[str, str] = {
    "api": "hermes_agent.cli.commands.worker:api",
    "approvals": "hermes_agent.cli.commands.verbs:approvals",
    "auth": "hermes_agent.cli.commands.auth:auth",
    "bundles": "hermes_agent.cli.commands.bundles:bundles",
    "chat": "hermes_agent.cli.commands.chat:chat",
    "checkpoints": "hermes_agent.cli.commands.checkpoints:checkpoints",
    "completion": "hermes_agent.cli.commands.completion:completion",
    "config": "hermes_agent.cli.commands.config:config",
    "cost": "hermes_agent.cli.commands.cost:cost",
    "curator": "hermes_agent.cli.commands.verbs:curator",
    "demo": "hermes_agent.cli.commands.demo:demo",
    "doctor": "hermes_agent.cli.commands.doctor:doctor",
    "gateway": "hermes_agent.cli.commands.gateway:gateway",
    "hooks": "hermes_agent.cli.commands.hooks:hooks",
    "learn": "hermes_agent.cli.commands.verbs:learn",
    "login": "hermes_agent.cli.commands.auth:login",
    "logout": "hermes_agent.cli.commands.auth:logout",
    "logs": "hermes_agent.cli.commands.logs:logs",
    "mcp": "hermes_agent.cli.commands.mcp:mcp",
    "memory": "hermes_agent.cli.commands.verbs:memory",
    "model": "hermes_agent.cli.commands.model:model",
    "pairing": "hermes_agent.cli.commands.verbs:pairing",
    "prompt": "hermes_agent.cli.commands.prompt:prompt",
    "replay": "hermes_agent.cli.commands.replay:replay",
    "secrets": "hermes_agent.cli.commands.secrets:secrets",
    "send": "hermes_agent.cli.commands.webhook:send",
    "sessions": "hermes_agent.cli.commands.sessions:sessions",
    "setup": "hermes_agent.cli.commands.setup:setup",
    "skills": "hermes_agent.cli.commands.skills:skills",
    "status": "hermes_agent.cli.commands.status:status",
    "tools": "hermes_agent.cli.commands.tools:tools",
    "trust": "hermes_agent.cli.commands.verbs:trust",
    "webhook": "hermes_agent.cli.commands.webhook:webhook",
    "worker": "hermes_agent.cli.commands.worker:worker",
}

TAPED = ("api", "chat", "gateway", "worker")
"""Those that models answer in, so that they can be recorded and replayed like the chat."""

BELOW_AGENT = "hermes_agent.host.process_table:below_agent"
CHILDS = "a command of the agent may read, and run work of its own with `hermes -z PROMPT`, but not change this."
NO_HOME = (
    "Behind the wall there is no home of Hermes: a command of the agent sees neither its settings nor its sessions."
)
OPEN: dict[str, str] = {
    "approvals": "list",
    "auth": "list",
    "bundles": "list show",
    "checkpoints": "list show diff",
    "config": "check explain get path show",
    "gateway": "logs status",
    "hooks": "list",
    "mcp": "list show",
    "memory": "log show",
    "memory facts": "log show",
    "model": "list search show",
    "pairing": "list",
    "secrets": "list",
    "sessions": "list search show stats",
    "skills": "audit browse check diff history inspect list search show stats",
    "skills tap": "list",
    "tools": "list",
    "webhook": "list",
    "": "completion cost demo doctor logs prompt replay status",
}
"""What a command of the agent may run, by group: these change nothing. Every other subcommand is the owner's."""

SUMMARIES: dict[str, str] = {
    "api": "Serve the agent to programs, over HTTP.",
    "approvals": "List what you allowed for good, and withdraw it.",
    "auth": "Show who is signed in, and which keys there are.",
    "bundles": "Group skills that are used by one name.",
    "chat": "Start a chat, as `hermes` alone does.",
    "checkpoints": "List checkpoints of changed files, and restore them.",
    "completion": "Print the completion script of a shell.",
    "config": "Read and change the settings.",
    "cost": "Show used tokens and their cost.",
    "curator": "Archive, merge and repair the skills that the agent made.",
    "demo": "Show the program at work, without a key.",
    "doctor": "Check this installation and say what to do.",
    "gateway": "Connect the agent to chat platforms.",
    "hooks": "List hooks, and choose which may run.",
    "learn": "List, approve and undo lessons.",
    "login": "Sign in to a vendor instead of using a key.",
    "logout": "Sign out of a vendor.",
    "logs": "Show what the program did, line by line.",
    "mcp": "Connect the agent to MCP servers.",
    "memory": "Show, edit and undo the agent's notes.",
    "model": "Show, choose and test the model.",
    "pairing": "Admit people by their pairing code.",
    "prompt": "Show the prompt by section, in bytes and tokens.",
    "replay": "Replay a recording, and show what differs.",
    "secrets": "Save secrets for tools, by name.",
    "send": "Send a message to a chat.",
    "sessions": "List, read, search, export and delete sessions.",
    "setup": "Find or choose a model, and check that it answers.",
    "skills": "Read, install and update skills, and undo changes.",
    "status": "Show what runs, and what waits for whom.",
    "tools": "Show tools, and switch them on and off by surface.",
    "trust": "Choose the folders whose files you trust.",
    "webhook": "Show webhook routes, and try one out.",
    "worker": "Run the sessions of gateways and API servers.",
}
