"""Mixtures: several models of other vendors are asked, and one answers out of what they say (section `moa`)."""

from __future__ import annotations

from hermes_agent.providers.vendor import Vendor

VENDOR = Vendor(name="moa", title="Mixture of models", dialect="openai_chat", needs_key=False, mixes=True)
