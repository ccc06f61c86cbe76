"""Trickle: stream tables on Spark and Delta, refreshed by computing only what changed."""
