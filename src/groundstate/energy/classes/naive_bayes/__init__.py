"""Features that are independent given the class."""
