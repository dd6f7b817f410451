"""The door for coding agents: what they can ask for, as an MCP server.

`door` does the work and knows no protocol, `answers` are its results, `server` offers them as tools
and resources.
"""
