"""The pages, one file each; a page is found by being here."""
