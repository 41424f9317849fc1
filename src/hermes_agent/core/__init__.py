"""The vocabulary that the other packages share: values, protocols and small helpers; standard library only."""
