"""The processes below the judge: starting, driving, reading and ending them."""
