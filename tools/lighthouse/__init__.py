"""Lighthouse of the web app, the console and the site: ``python -m tools lighthouse``.

Its npm package is a workspace of its own, which ``npm ci`` of tests and builds leaves out.
"""
