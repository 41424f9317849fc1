"""What goes on when nobody types, one package each kind: goals."""
