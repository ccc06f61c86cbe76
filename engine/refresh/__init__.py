"""One refresh of one stream table, from the version check to the commit."""
