"""What exists is documented: every error, every setting, every command, and every file that the docs name."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine import errors
from engine.config import SETTINGS

ROOT = Path(__file__).resolve().parent.parent


def concrete_errors(kind: type[errors.TrickleError] = errors.TrickleError) -> list[type[errors.TrickleError]]:
    """What is really raised: the leaves of the tree, and what is more than a kind of them."""
    children = kind.__subclasses__()
    own = [] if children and kind is not errors.RefreshFailed else [kind]
    return own + [each for child in children for each in concrete_errors(child)]


@pytest.mark.parametrize("error", concrete_errors(), ids=lambda error: error.__name__)
def test_every_error_is_documented_with_its_exit_code(error):
    text = (ROOT / "docs/ERRORS.md").read_text(encoding="utf-8")
    row = next((line for line in text.splitlines() if line.startswith(f"| `{error.__name__}` |")), None)
    assert row is not None, f"docs/ERRORS.md has no row for {error.__name__}"
    exit_code, _, retryable = row.split("|")[2].strip().partition(", ")
    assert int(exit_code) == error.exit_code
    assert (retryable == "retryable") == error.retryable


def test_no_error_is_documented_that_does_not_exist():
    text = (ROOT / "docs/ERRORS.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    assert documented == {error.__name__ for error in concrete_errors()}


def test_settings_page_is_what_the_table_of_settings_gives():
    from scripts.reference import settings_page

    assert (ROOT / "docs/SETTINGS.md").read_text(encoding="utf-8") == settings_page()
    assert all(f"`{setting.key}`" in settings_page() for setting in SETTINGS)


def test_command_page_is_what_the_commands_give():
    from scripts.reference import cli_page

    assert (ROOT / "docs/CLI.md").read_text(encoding="utf-8") == cli_page()


def documents() -> list[str]:
    listing = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return listing.stdout.splitlines()


@pytest.mark.parametrize("document", documents())
def test_files_that_a_document_names_exist(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) if "://" not in link]
    missing = [link for link in links if not ((ROOT / document).parent / link).exists()]
    # code spans that look like a file of the repository, patterns and placeholders apart
    spans = re.findall(r"`((?:engine|trickle_tui|tests|bench|docs|scripts|themes)/[\w./-]+)`", text)
    missing += [span for span in spans if not (ROOT / span).exists()]
    assert missing == []


def test_the_readmes_python_can_be_imported():
    """Each name that it imports, from where it imports it; what it then does is what the engine's tests do."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    imports = [line.strip() for block in blocks for line in block.splitlines() if "import " in line]
    assert imports
    for line in imports:
        subprocess.run([sys.executable, "-c", line], cwd=ROOT, check=True)
