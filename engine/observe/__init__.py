"""What happened and how it is going: refresh history, later metrics, health and advice."""
