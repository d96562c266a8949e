"""The client of MySQL, its schema, its users and its binlog.

``from plaza.infra.mysql import mysql`` gives the client: ``mysql.fetch_all(statement)``. The
room itself has no names.
"""
