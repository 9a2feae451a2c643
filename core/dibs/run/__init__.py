"""`dibs run`: runs a command on a claim and ends it before the lease does."""
