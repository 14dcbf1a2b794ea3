"""What JAX compiled: kept in private, checked before it is run, compiled anew where damaged."""

import pytest
from jax._src import compilation_cache

from stagescope.flow import autodiff
from stagescope.flow.autodiff import CompiledCode, jax, jnp


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A cache of its own for everything that is compiled in the test."""
    monkeypatch.setattr(compilation_cache, "_cache", CompiledCode(tmp_path))
    least = jax.config.jax_persistent_cache_min_compile_time_secs
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    yield tmp_path
    jax.config.update("jax_persistent_cache_min_compile_time_secs", least)


def cubed():
    """Compiled anew, or read from disk: what this process has in memory is forgotten."""
    jax.clear_caches()
    return float(jax.jit(lambda x: jnp.sin(x) ** 3)(0.5))


def test_this_process_uses_the_checked_cache():
    assert isinstance(compilation_cache._get_cache(jax.devices()[0].client), CompiledCode)


@pytest.mark.filterwarnings("error")
def test_damaged_code_is_never_run_and_made_again(kept, capsys):
    value = cubed()
    (path,) = (path for path in kept.iterdir() if "lambda" in path.name)
    whole = path.read_bytes()
    assert cubed() == value
    assert not capsys.readouterr().err
    for damaged in (bytes(len(whole)), whole[:99], b"", whole[:400] + bytes([whole[400] ^ 1]) + whole[401:]):
        path.write_bytes(damaged)
        assert cubed() == value
        assert f"{path} is damaged" in capsys.readouterr().err
        assert CompiledCode(kept).get(path.name)


def test_a_jax_without_such_a_place_compiles_anew(tmp_path, monkeypatch):
    monkeypatch.delattr(compilation_cache, "_cache_initialized")
    assert not autodiff._keep(CompiledCode(tmp_path))
