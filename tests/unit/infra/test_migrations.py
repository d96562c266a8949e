"""Statements of migration files."""

from __future__ import annotations

from plaza.infra.mysql.migrations import list_files, split_statements


def test_a_statement_ends_with_a_semicolon_at_the_end_of_a_line() -> None:
    assert split_statements("CREATE TABLE a (b INT);\nDROP TABLE c ;  \n") == [
        "CREATE TABLE a (b INT)",
        "DROP TABLE c",
    ]


def test_a_semicolon_inside_a_line_is_part_of_it() -> None:
    sql = "INSERT INTO a VALUES ('x;y'),\n ('z');\n"
    assert split_statements(sql) == ["INSERT INTO a VALUES ('x;y'),\n ('z')"]


def test_comment_lines_are_removed() -> None:
    assert split_statements("-- first;\nDROP TABLE a;\n-- last;\n") == ["DROP TABLE a"]


def test_a_file_without_statements_has_none() -> None:
    assert split_statements("") == []
    assert split_statements("\n-- no statement\n\n;\n") == []


def test_the_last_statement_needs_no_semicolon() -> None:
    assert split_statements("DROP TABLE a;\nDROP TABLE b") == ["DROP TABLE a", "DROP TABLE b"]


def test_migrations_of_an_area_are_numbered_without_a_gap() -> None:
    areas: dict[str, list[int]] = {}
    for file in list_files().values():
        areas.setdefault(file.parent.name, []).append(int(file.name[:4]))
    for area, numbers in areas.items():
        assert numbers == list(range(1, len(numbers) + 1)), area
