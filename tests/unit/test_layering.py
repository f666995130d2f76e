"""Every import under `src/totune` points upwards in the table of `docs/architecture.md`."""

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = {"tasks", "heads", "strategies", "baselines", "analyses"}
# What members of a plug-in folder may share.
FOUNDATIONS = {"base", "defaults", "phases", "rates", "saving", "text_features"}
FOUNDATIONS |= {"findings", "blocks", "linear_probes"}
PARTS = ("_section", "_model")  # a member's further files
COMPOSING = {  # (member, member it is composed of)
    ("totune.strategies.stack_and_finetune", "totune.strategies.fine_tuning"),
    ("totune.analyses.forecast", "totune.analyses.layer_probe"),
}
DOORS = {"totune", "totune.__main__"}  # they open onto everything, and lazily; nobody enters here

Imports = dict[str, set[str]]  # module -> the package's modules it imports


def read_order(table: str) -> list[str]:
    """The names in the first column of the module table, top to bottom."""
    return re.findall(r"^\| `(\w+)/?`(?: \*)? \|", table, flags=re.MULTILINE)


def read_imports(package: Path) -> Imports:
    """What each module of the package imports from the package, wherever the import stands."""
    files = {module_name(path, package): path for path in sorted(package.rglob("*.py"))}
    return {
        name: {target for target in targets(path, name, set(files)) if target != name}
        for name, path in files.items()
    }


def module_name(path: Path, package: Path) -> str:
    parts = [package.name, *path.relative_to(package).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def targets(path: Path, name: str, modules: set[str]) -> Iterator[str]:
    own_package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            source = absolute(node, own_package)
            for alias in node.names:
                inner = f"{source}.{alias.name}"
                found = inner if inner in modules else source
                if found in modules:
                    yield found


def absolute(node: ast.ImportFrom, own_package: str) -> str:
    if not node.level:
        return node.module or ""
    base = own_package.split(".")
    return ".".join([*base[: len(base) - node.level + 1], *filter(None, [node.module])])


def layer(module: str) -> str:
    return module.split(".")[1]


def faults(imports: Imports, order: list[str]) -> list[str]:
    """One sentence per import against the order, per module without a place in it, per cycle."""
    inner = {name: found - DOORS for name, found in imports.items() if name not in DOORS}
    unlisted = sorted({layer(name) for name in inner} - set(order))
    found = [f"{name} is not in the table" for name in unlisted]
    found += [
        f"{name} imports totune, the package's door, which opens onto everything"
        for name, imported in imports.items()
        if "totune" in imported and name not in DOORS
    ]
    for name, imported in inner.items():
        for target in sorted(imported):
            if layer(name) in order and layer(target) in order:
                found += crossing(name, target, order)
    return found + cycle(inner)


def crossing(name: str, target: str, order: list[str]) -> list[str]:
    if order.index(layer(target)) > order.index(layer(name)):
        return [f"{name} imports {target}, which lies below it"]
    if layer(target) == layer(name) in PLUGINS and not may_share(name, target):
        return [f"{name} imports {target}, another member of its folder"]
    return []


def may_share(name: str, target: str) -> bool:
    own_folder = target.count(".") > 2  # beside the members, for all of them
    named = target.rpartition(".")[2] in FOUNDATIONS or (name, target) in COMPOSING
    return own_folder or named or member_of(name) == member_of(target)


def member_of(module: str) -> str:
    """The member that a module belongs to."""
    for part in PARTS:
        module = module.removesuffix(part)
    return module


def cycle(imports: Imports) -> list[str]:
    try:
        tuple(TopologicalSorter(imports).static_order())
    except CycleError as error:
        return ["import cycle: " + " -> ".join(error.args[1])]
    return []


@pytest.fixture(scope="module")
def order() -> list[str]:
    return read_order((ROOT / "docs/architecture.md").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def imports() -> Imports:
    return read_imports(ROOT / "src/totune")


def test_imports_point_upwards(imports: Imports, order: list[str]):
    assert faults(imports, order) == []


def test_the_table_lists_no_module_that_is_gone(imports: Imports, order: list[str]):
    present = {layer(name) for name in imports if name not in DOORS}
    assert sorted(set(order) - present) == []


def test_plug_in_folders_are_the_starred_rows():
    table = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)/` \* \|", table, flags=re.MULTILINE)) == PLUGINS


def make_tree(folder: Path, files: dict[str, str]) -> Path:
    package = folder / "totune"
    for name, text in {"__init__.py": "", **files}.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return package


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"data/a.py": "from totune.errors import X"}, None, id="upwards"),
        pytest.param({"data/a.py": "from . import b", "data/b.py": ""}, None, id="own folder"),
        pytest.param(
            {"heads/a.py": "from totune.heads.base import X", "heads/base.py": ""}, None, id="base"
        ),
        pytest.param({"__init__.py": "from totune.heads import X"}, None, id="the door"),
        pytest.param(
            {"errors.py": "from totune.data.a import X", "data/a.py": ""},
            "totune.errors imports totune.data.a, which lies below it",
            id="downwards",
        ),
        pytest.param(
            {"errors.py": "def f():\n    import totune.heads"},
            "totune.errors imports totune.heads, which lies below it",
            id="downwards inside a function",
        ),
        pytest.param(
            {"data/a.py": "from ..heads import base", "heads/base.py": ""},
            "totune.data.a imports totune.heads.base, which lies below it",
            id="downwards, relative",
        ),
        pytest.param(
            {"heads/a.py": "from totune.heads import b", "heads/b.py": ""},
            "totune.heads.a imports totune.heads.b, another member of its folder",
            id="member to member",
        ),
        pytest.param(
            {"data/a.py": "from totune.data import b", "data/b.py": "import totune.data.a"},
            "import cycle: totune.data.a -> totune.data.b -> totune.data.a",
            id="cycle",
        ),
        pytest.param({"news.py": ""}, "news is not in the table", id="unlisted"),
        pytest.param(
            {"data/a.py": "from totune import __version__"},
            "totune.data.a imports totune, the package's door, which opens onto everything",
            id="through the door",
        ),
    ],
)
def test_the_checker_finds(tmp_path: Path, files: dict[str, str], expected: str | None):
    base = {"errors.py": "", "data/__init__.py": "", "heads/__init__.py": ""}
    imports = read_imports(make_tree(tmp_path, {**base, **files}))
    found = faults(imports, ["errors", "data", "heads"])
    assert found == ([] if expected is None else [expected])


def test_the_order_is_read_from_the_table():
    table = (
        "| Module | Holds |\n|---|---|\n| `errors` | `b` |\n| `data/` | c |\n| `heads/` * | d |\n"
    )
    assert read_order(table) == ["errors", "data", "heads"]
