"""The terminal dashboard. It draws what `engine` says and asks it to act; it knows no Spark and no SQL."""
