"""Pure functions from the engine's records to painted lines: no widget, no thread, no clock of their own."""
