"""From a winning kernel to a module of the user's own program.

`runtime/` is what runs there, with or without this package; `live/` makes a task of a module that
lives in a program; `folder.py` writes and reads what runs alone.
"""
