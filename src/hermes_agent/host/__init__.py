<<<<<<< HEAD
"""The machine, behind functions that can be faked."""
=======
"""The machine that Hermes runs on, behind functions that can be made to fail."""
>>>>>>> main
