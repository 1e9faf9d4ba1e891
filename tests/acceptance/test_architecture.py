"""The architecture that matters, as tests.

Others hold where their subject is tested: every setting in config.example.toml (test_settings), every language pack
complete (test_language, test_commands), the public contract (test_contract), every rule and its tests (test_rules).
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from assistant.commands import HANDLERS, LEAVING
from assistant.telegram.menu import menu
from memory.language import load_packs

ROOT = Path(__file__).parents[2]
SQL_HOMES = {"memory/database.py", "memory/migrate.py"}
VERBS = {
    f"memory.{name}"
    for name in (
        "engine", "facts", "conversation", "context", "learn", "forget", "compress", "recall", "assemble", "choose",
        "episodes", "episode_life", "answers", "revise", "importing", "portable", "copies", "journal", "fading",
    )
}  # fmt: skip
ENTRIES = {"assistant/start.py", "assistant/testing_forks.py"}
EFFECTS = {"open", "print", "input", "connect", "run", "Popen", "mkdir", "write_text", "unlink", "urlopen", "socket"}


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
def test_the_engine_imports_downwards_only(file: Path) -> None:
    """Values, errors and limits know nothing of the rest; stores know no verb; only the package knows the top."""
    relative = file.relative_to(ROOT).as_posix()
    ours = {name for name in imports(file) if name.startswith("memory")}
    if relative in ("memory/values.py", "memory/errors.py", "memory/limits.py"):
        assert not ours
    if relative == "memory/ports.py":
        assert ours <= {"memory.values", "memory.errors"}
    if relative.startswith("memory/stores/"):
        assert not ours & VERBS
    if relative not in ("memory/__init__.py", "memory/copies.py"):  # a copy is opened as a memory of its own
        assert "memory.engine" not in ours


@pytest.mark.parametrize("file", modules("assistant"), ids=lambda file: str(file.relative_to(ROOT)))
def test_the_assistant_imports_downwards_only(file: Path) -> None:
    """What the turn is made of knows neither a channel nor the command line nor the daemon."""
    relative = file.relative_to(ROOT).as_posix()
    ours = {name for name in imports(file) if name.startswith("assistant")}
    if not relative.startswith("assistant/cli/"):
        assert not {name for name in ours if name.startswith("assistant.cli")} or relative in ENTRIES
    if relative in ("assistant/turn.py", "assistant/commands.py", "assistant/known.py", "assistant/tool_use.py"):
        assert not ours & {"assistant.daemon", "assistant.inbox", "assistant.repl", "assistant.telegram"}
    if not relative.startswith(("assistant/telegram/", "assistant/testing_")):
        assert "telegram" not in {name.split(".")[0] for name in imports(file)}
    assert not {name for name in imports(file) if name.split(".")[0] in ("bench", "tests", "docs", "examples")}


@pytest.mark.parametrize("package", ["memory", "assistant"])
def test_only_tests_benchmarks_and_recordings_use_what_is_for_tests(package: str) -> None:
    users = [file for file in modules(package) if any(".testing" in name for name in imports(file))]
    assert all("testing" in file.name for file in users), users


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


@pytest.mark.parametrize(
    "file", [*modules("memory"), *modules("assistant")], ids=lambda file: str(file.relative_to(ROOT))
)
def test_a_module_does_nothing_when_it_is_imported(file: Path) -> None:
    """Definitions and values only: nothing is opened, started, written or said outside functions."""
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test):
            continue
        for call in [part for part in ast.walk(node) if isinstance(part, ast.Call)]:
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            assert name not in EFFECTS, ast.unparse(call)


@pytest.mark.parametrize("language", sorted(load_packs()))
def test_every_command_is_in_the_menu_of_telegram(language: str) -> None:
    """Its description is the pack's own, short enough for a menu, and its name one Telegram accepts."""
    packs = load_packs()
    shown = dict(menu(packs, language))
    assert list(shown) == [name for name in HANDLERS if name not in LEAVING]
    for name, text in shown.items():
        assert re.fullmatch(r"[a-z0-9_]{1,32}", name)
        assert text == packs[language].commands[name]
        assert 1 <= len(text) <= 256


def test_no_file_names_a_package_registry() -> None:
    hosts = ("py" + "pi.org", "python" + "hosted.org", "ana" + "conda.org", "--index" + "-url")
    folders = ("memory", "assistant", "prompts", "bench", "docs", "deploy", "examples", "tests", ".ci")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*") if file.is_file()]
    files += [file for file in ROOT.iterdir() if file.is_file()]
    texts = [file for file in files if file.suffix in (".py", ".md", ".toml", ".txt", ".yaml", ".service", "")]
    assert [file for file in texts if any(host in file.read_text("utf-8", "ignore") for host in hosts)] == []
