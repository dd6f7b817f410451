"""How a run is searched: methods that decide what is asked of whom, and what they share."""
