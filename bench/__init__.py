"""What Trickle costs, measured on this machine and told as ratios within one run."""
