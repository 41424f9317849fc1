"""Every subcommand: where it is, and what it is for."""

from __future__ import annotations

COMMANDS: dict[str, str] = {
    "auth": "hermes_agent.cli.commands.auth:auth",
    "checkpoints": "hermes_agent.cli.commands.checkpoints:checkpoints",
    "completion": "hermes_agent.cli.commands.completion:completion",
    "config": "hermes_agent.cli.commands.config:config",
    "cost": "hermes_agent.cli.commands.cost:cost",
    "demo": "hermes_agent.cli.commands.demo:demo",
    "doctor": "hermes_agent.cli.commands.doctor:doctor",
    "learn": "hermes_agent.cli.commands.learn:learn",
    "login": "hermes_agent.cli.commands.auth:login",
    "logout": "hermes_agent.cli.commands.auth:logout",
    "memory": "hermes_agent.cli.commands.memory:memory",
    "model": "hermes_agent.cli.commands.model:model",
    "prompt": "hermes_agent.cli.commands.prompt:prompt",
    "replay": "hermes_agent.cli.commands.replay:replay",
    "secrets": "hermes_agent.cli.commands.secrets:secrets",
    "sessions": "hermes_agent.cli.commands.sessions:sessions",
    "setup": "hermes_agent.cli.commands.setup:setup",
    "skills": "hermes_agent.cli.commands.skills:skills",
    "tools": "hermes_agent.cli.commands.tools:tools",
}

SUMMARIES: dict[str, str] = {
    "auth": "Show who is signed in, and which keys there are.",
    "checkpoints": "Show what files were before the agent changed them, and put them back.",
    "completion": "Print the completion script of a shell.",
    "config": "Read and change the settings.",
    "cost": "Show what was used and what it cost.",
    "demo": "Show the program at work, without a key.",
    "doctor": "Check this installation and say what to do.",
    "learn": "See, judge and take back what was learned.",
    "login": "Sign in to a vendor instead of holding a key.",
    "logout": "Forget a sign-in.",
    "memory": "Read, edit and take back what is noted.",
    "model": "Show, choose and test the model.",
    "prompt": "Show the prompt by section, in bytes and tokens.",
    "replay": "Play a recording, and say what differs.",
    "secrets": "Keep secrets for tools, by name.",
    "sessions": "List, read, find, export and delete conversations.",
    "setup": "Find or choose a model, and see that it answers.",
    "skills": "Read skills, and take changes of them back.",
    "tools": "Show tools, and switch them on and off by surface.",
}
