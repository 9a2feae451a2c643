"""`dibs run`: a command that works on a claim and never outlives it."""
