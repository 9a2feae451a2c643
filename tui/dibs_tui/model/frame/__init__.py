"""What each cell around the panels says: pure rows of pieces, without colours and widgets."""
