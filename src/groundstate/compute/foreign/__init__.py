"""Private parts of other libraries, under public names: the one place to mend after an upgrade."""
