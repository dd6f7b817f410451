"""The part of seeding that imports torch; `python -m` runs it in a process of its own."""
