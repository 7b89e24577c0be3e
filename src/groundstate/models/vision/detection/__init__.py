"""How pictures with boxes come in, and the methods that find objects."""
