"""What a user gets who installs the wheel and nothing else of the repository."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built and unpacked as pip would; what it depends on is taken from this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("olvido-*.whl")
    target = folder / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(target)]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
    return target


def run(installed: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {"PATH", "HOME", "LANG"}
    environment = {key: value for key, value in os.environ.items() if key in kept}
    environment |= {"PYTHONPATH": str(installed), "XDG_CONFIG_HOME": str(folder / "none")}
    code = "from assistant.cli import main; import assistant; print(assistant.__file__); main()"
    return subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("arguments", [("--help",), ("config", "show"), ("facts", "list")])
def test_an_installed_wheel_works_in_an_empty_folder(
    installed: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = run(installed, tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(installed))


@pytest.mark.long
def test_an_installed_wheel_brings_its_language_packs_and_learns(installed: Path, tmp_path: Path) -> None:
    done = run(installed, tmp_path, "facts", "add", "我住在北京")
    assert done.returncode == 0, done.stderr
    assert "我住在北京" in run(installed, tmp_path, "facts", "list").stdout
