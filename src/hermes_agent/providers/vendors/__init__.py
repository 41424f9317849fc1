"""Table of vendors: name to facts. Its order is the order of preference."""

from __future__ import annotations

from hermes_agent.providers.vendor import Vendor
from hermes_agent.providers.vendors import hosts, makers

VENDORS: dict[str, Vendor] = {each.name: each for each in (*makers.VENDORS, *hosts.VENDORS)}
