"""How fast a candidate is: the clocks, their statistics, and the rules against hidden work."""
