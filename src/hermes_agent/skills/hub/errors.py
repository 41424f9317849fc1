"""Why something from elsewhere was not done."""

from __future__ import annotations

from hermes_agent.core.errors import HermesError


class HubError(HermesError):
    """A tap, a repository or a skill in it that cannot be used; nothing was changed."""


class Unreachable(HubError):
    """A repository that did not answer, or is gone."""
