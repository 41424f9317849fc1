"""`Capability` and `Effect` under the path at which tools of people import them; they are in `core/tool.py`."""

from hermes_agent.core.tool import Capability as Capability
from hermes_agent.core.tool import Effect as Effect
