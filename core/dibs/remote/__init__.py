"""The engine for boards that `dibs serve` offers: a client of its HTTP interface."""
