"""The dashboard of a dibs board."""
