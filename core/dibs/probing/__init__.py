"""Whether a directory can carry a board, found out by doing; `check --probe` and `init` ask."""
