"""Shell command parser: which programs a command runs, with which arguments, input and output."""
