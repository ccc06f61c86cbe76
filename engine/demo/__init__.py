"""An online shop that keeps changing, to try Trickle on: its data, its writer and its stream tables."""
