"""The command line: one file a group of commands, all of them on top of the Engine."""
