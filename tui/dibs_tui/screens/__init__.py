"""The screens, each with its style beside it."""
