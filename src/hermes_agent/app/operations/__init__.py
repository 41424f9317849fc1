"""Operations behind every surface (CLI, slash commands, API): functions to list, show, change, approve and undo, by
noun."""
