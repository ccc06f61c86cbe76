"""What one can ask of an engine, in parts; `engine.engine.Engine` is all of them."""
