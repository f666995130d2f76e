"""Writes from the code: the pages of reference, and the typed keywords of the Python calls.

`docs/reference.md` holds commands, settings and members with their options, `docs/python.md` what
`import totune` offers, `src/totune/keywords.py` the types of the settings that calls take.

python docs/build.py            # write them
python docs/build.py --check    # exit 1 if one is stale, or if a link in the docs leads nowhere
"""

import argparse
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# Read when typer is imported: help as plain text of one width, whatever terminal runs this.
os.environ |= {"TERMINAL_WIDTH": "96", "_TYPER_FORCE_DISABLE_TERMINAL": "1", "NO_COLOR": "1"}

sys.path.insert(0, str(Path(__file__).resolve().parent))  # the modules beside this one

import typer
from python_reference import python_text
from typed_keywords import keywords_text
from typer.testing import CliRunner

from totune.cli.app import app
from totune.cli.catalogue import KINDS, CatalogueEntry, entries, setting_entries

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
HEAD = "# Reference\n\nWritten by `make docs` from the code; edits belong there.\n"


def command_paths(group: typer.Typer) -> Iterator[list[str]]:
    """The words of every command, those of nested groups included."""
    yield []
    for command in group.registered_commands:
        yield [str(command.name)]
    for nested in group.registered_groups:
        if nested.typer_instance is not None:
            yield from ([str(nested.name), *path] for path in command_paths(nested.typer_instance))


def command_section(path: list[str]) -> str:
    """A command's heading and its `--help`."""
    result = CliRunner().invoke(app, [*path, "--help"], prog_name="totune")
    if result.exit_code:
        raise RuntimeError(f"{' '.join(path)} --help failed: {result.output}")
    lines = [line.rstrip() for line in result.output.strip("\n").splitlines()]
    title = " ".join(["totune", *path])
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
    return f"### {title}\n\n```\n{text}\n```\n"


def member_section(entry: CatalogueEntry) -> str:
    """A member's heading, its summary and a table of its options."""
    lines = [f"### {entry.name}", "", entry.summary, ""]
    if entry.options:
        lines += ["| Option | Values | Default | |", "|---|---|---|---|"]
        for option in entry.options:
            default = "-" if option.default is None else f"`{option.default}`"
            values = option.type.replace("|", "\\|")
            summary = option.summary.replace("|", "\\|")
            lines.append(f"| `{option.name}` | {values} | {default} | {summary} |")
        lines.append("")
    return "\n".join(lines)


def reference() -> str:
    """The whole page."""
    sections = [HEAD, "## Commands\n", *map(command_section, command_paths(app))]
    sections += ["## Settings in Python\n", *map(member_section, setting_entries())]
    for kind in KINDS:
        sections += [f"## {kind.capitalize()}\n", *map(member_section, entries(kind))]
    return "\n".join(sections)


def dead_links(root: Path) -> list[str]:
    """Relative links in a project's pages that lead to no file."""
    pages = [*root.glob("*.md"), *root.glob("docs/*.md")]
    return [
        f"{page.relative_to(root)}: {target}"
        for page in sorted(pages)
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]


def main() -> int:
    """Writes or checks the page; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; fail if stale")
    texts = {
        "docs/reference.md": reference(),
        "docs/python.md": python_text(),
        "src/totune/keywords.py": keywords_text(),
    }
    if not parser.parse_args().check:
        for name, text in texts.items():
            (ROOT / name).write_text(text, encoding="utf-8")
        print(f"{', '.join(texts)} written")
        return 0
    faults = [f"a link leads nowhere: {link}" for link in dead_links(ROOT)]
    for name, text in texts.items():
        if not (ROOT / name).exists() or (ROOT / name).read_text(encoding="utf-8") != text:
            faults.append(f"{name} is stale; run `make docs`")
    print("\n".join(faults) or "docs are up to date")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
