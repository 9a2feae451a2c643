"""The engine for boards in a PostgreSQL database."""
