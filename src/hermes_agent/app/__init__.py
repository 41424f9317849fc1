"""One system out of the parts: wiring, the front door, the slash commands, the library facade."""
