"""`python -m hermes_agent` is `hermes`."""

from __future__ import annotations

import sys

from hermes_agent.cli.main import main

sys.exit(main())
