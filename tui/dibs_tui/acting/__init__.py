"""What an operator does to tasks: bound to what was on the screen, shown before, told after."""
