"""How loops are compiled, and loops that several compiled files share."""
