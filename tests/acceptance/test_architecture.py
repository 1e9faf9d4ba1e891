"""The architecture that matters, as tests."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SQL_HOMES = {"memory/database.py", "memory/migrate.py"}


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imports(file: Path) -> set[str]:
    """Every module a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("file", modules("memory"), ids=lambda file: str(file.relative_to(ROOT)))
def test_the_engine_imports_neither_the_assistant_nor_a_client_nor_settings(file: Path) -> None:
    roots = {name.split(".")[0] for name in imports(file)}
    assert not roots & {"assistant", "openai", "telegram", "pydantic_settings", "structlog", "typer", "rich"}


@pytest.mark.parametrize("file", modules("memory"), ids=lambda file: str(file.relative_to(ROOT)))
def test_values_and_stores_do_not_import_the_verbs_above_them(file: Path) -> None:
    relative = file.relative_to(ROOT).as_posix()
    verbs = {"memory.engine", "memory.facts", "memory.conversation", "memory.context", "memory.learn", "memory.forget"}
    if relative in ("memory/values.py", "memory/errors.py", "memory/limits.py"):
        assert not {name for name in imports(file) if name.startswith("memory.")}
    if relative.startswith("memory/stores/"):
        assert not imports(file) & verbs


@pytest.mark.parametrize(
    "file", [*modules("memory"), *modules("assistant")], ids=lambda file: str(file.relative_to(ROOT))
)
def test_sql_lives_only_in_the_stores_the_database_and_the_migrations(file: Path) -> None:
    relative = file.relative_to(ROOT).as_posix()
    if relative.startswith("memory/stores/") or relative in SQL_HOMES or relative == "memory/testing.py":
        return
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value.split()
            assert not words or words[0] not in ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE"), node.value


def test_importing_the_packages_opens_and_loads_nothing_heavy() -> None:
    code = (
        "import sys, memory, assistant, assistant.cli, memory.limits\n"
        "heavy = {'openai', 'telegram', 'wordllama', 'numpy', 'tiktoken', 'pysqlite3', 'structlog'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
