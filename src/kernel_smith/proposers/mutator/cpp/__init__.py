"""Edits of C++ texts inside a candidate."""
