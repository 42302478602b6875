"""What is measured by hand: each file says how it is run."""
