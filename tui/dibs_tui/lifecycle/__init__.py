"""Starts and ends the program, and writes to the terminal."""
