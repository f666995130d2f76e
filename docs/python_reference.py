"""The text of `docs/python.md`, from the docstrings of what `import totune` offers."""

import inspect
from collections.abc import Iterator
from typing import Any

import totune
from totune.registry import Member

HEAD = """# Python reference

Written by `make docs` from the docstrings; edits belong there. `import totune` loads none of this
until it is used. Files, commands and the options of every member: [reference.md](reference.md).
"""


def python_text() -> str:
    """The whole page."""
    offered = {name: getattr(totune, name) for name in totune.__all__ if name != "__version__"}
    calls = {name: one for name, one in offered.items() if inspect.isfunction(one)}
    members = {n: o for n, o in offered.items() if isinstance(o, type) and hasattr(o, "name")}
    classes = {
        name: one
        for name, one in offered.items()
        if isinstance(one, type) and name not in members and not issubclass(one, Exception)
    }
    errors = {n: o for n, o in offered.items() if isinstance(o, type) and issubclass(o, Exception)}
    registries = [name for name in offered if name.isupper()]
    return "\n".join(
        [
            HEAD,
            "## Calls\n",
            *(_function(f"totune.{name}", one) for name, one in calls.items()),
            "## Classes\n",
            *(_class(name, one) for name, one in classes.items()),
            "## Members as objects\n",
            "`strategies=[totune.LoRA(r=4), totune.TfIdf()]`, `head=totune.Esim(hidden_size=150)`: "
            "the options are those of [reference.md](reference.md), and are checked alike.\n",
            "| Class | Name |\n|---|---|",
            *(f"| `totune.{name}` | {one.name} |" for name, one in members.items()),
            "\n## Registries\n",
            f"{', '.join(f'`totune.{name}`' for name in registries)}: decorate a class of your own "
            "with `register(NAME)`, and it is found by its name everywhere.\n",
            "## Errors\n",
            *(f"- `totune.{name}`: {_summary(one)}" for name, one in errors.items()),
            "",
        ]
    )


def _function(name: str, function: Any) -> str:
    return f"### {name}\n\n```\n{name}{_signature(function)}\n\n{_text(function)}\n```\n"


def _class(name: str, one: type) -> str:
    methods = "\n".join(_methods(one))
    signature = "" if issubclass(one, Member) or inspect.isabstract(one) else _signature(one)
    return f"### totune.{name}\n\n```\n{name}{signature}\n\n{_text(one)}\n{methods}```\n"


def _methods(one: type) -> Iterator[str]:
    for name, method in vars(one).items():
        if name.startswith("_"):
            continue
        if isinstance(method, classmethod | staticmethod):
            method = method.__func__
        is_property = not inspect.isfunction(method)
        target = getattr(method, "fget", None) or getattr(method, "func", None) or method
        if not inspect.isfunction(target) or not target.__doc__:
            continue
        shown = name if is_property else f"{name}{_signature(target)}"
        body = _text(target).replace("\n", "\n    ")
        yield f"\n{shown}\n    {body}\n"


def _signature(one: Any) -> str:
    """Names and defaults; types stand in the stubs that editors read."""
    parameters = [
        p.replace(annotation=p.empty)
        for p in inspect.signature(one).parameters.values()
        if p.name != "self"
    ]
    text = ", ".join(
        ("*" if p.kind is p.VAR_POSITIONAL else "") + _parameter(p) for p in parameters
    )
    return f"({text})" if len(text) < 80 else f"(\n    {text.replace(', ', f',{chr(10)}    ')}\n)"


def _parameter(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
        return f"{stars.get(parameter.kind, '')}{parameter.name}"
    return f"{parameter.name}={parameter.default!r}"


def _text(one: Any) -> str:
    lines = (inspect.getdoc(one) or "").splitlines()
    return "\n".join(line.rstrip() for line in lines)


def _summary(one: Any) -> str:
    return _text(one).partition("\n\n")[0].replace("\n", " ")
