"""Evaluations for others, over HTTP: a durable queue, a dispatcher, and the web application."""
