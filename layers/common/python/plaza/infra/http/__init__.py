"""Requests and responses: routes, arguments, problems, callers, limits, cursors."""
