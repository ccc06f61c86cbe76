"""Who is due, and who refreshes it."""
