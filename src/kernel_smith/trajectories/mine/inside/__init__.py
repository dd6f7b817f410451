"""What runs in a process with torch: trying a mined class out, under confinement."""
