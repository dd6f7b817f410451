"""Proposers: what suggests candidates. Today the framework's compiler (`seed`)."""
