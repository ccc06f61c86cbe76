"""The few widgets that put painted lines on the screen and listen to keys."""
