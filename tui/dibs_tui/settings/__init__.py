"""The settings of the user, and the remembered view."""
