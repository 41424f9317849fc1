"""Operations behind every surface (CLI, slash commands, API): functions that list, show, change, approve and undo; one
module per subject."""
