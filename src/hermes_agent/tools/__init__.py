"""What acts on the machine: files, the shell, and what decides whether it may."""
