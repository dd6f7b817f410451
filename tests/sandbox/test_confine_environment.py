"""Environment and descriptors: only what is meant to be handed over."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.evaluation.sandbox.confine import devices, environment, scrubbed_environment

SCRATCH = Path("/scratch")
FOLDERS = {
    *("HOME", "TMPDIR", "XDG_CACHE_HOME"),
    *("TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "TRITON_CACHE_DIR"),
}
KEPT = {"PATH": "/bin", "LANG": "C", "LC_ALL": "C", "TZ": "UTC", "OMP_NUM_THREADS": "2"}
KEPT |= {"GOMP_SPINCOUNT": "0", "MKL_NUM_THREADS": "2", "KMP_AFFINITY": "none"}


def test_what_computing_needs_is_kept():
    assert KEPT.items() <= scrubbed_environment(KEPT, SCRATCH).items()


@given(st.dictionaries(st.text(), st.text()))
def test_nothing_else_is_kept_and_every_folder_is_scratch(base):
    scrubbed = scrubbed_environment(base, SCRATCH)
    prefixes = ("LC_", "OMP_", "GOMP_", "MKL_", "KMP_")
    others = scrubbed.keys() - FOLDERS
    plain = {"PATH", "LANG", "TZ", "MACA_PATH", "ROCM_PATH", *devices.CHOICES}
    assert all(name in plain or name.startswith(prefixes) for name in others)
    assert {scrubbed[name] for name in FOLDERS} == {"/scratch"}


def test_a_secret_cannot_be_found_in_the_environment(confined, monkeypatch):
    monkeypatch.setenv("API_KEY", "secret")
    monkeypatch.setenv("HOME", "/home/me")

    def look():
        return [os.environ.get("API_KEY"), os.getenv("HOME"), tempfile.gettempdir()]

    scratch = str(confined.policy.scratch)
    assert confined.value(look) == [None, scratch, scratch]


def test_the_environment_that_the_process_was_started_with_is_erased(confined):
    def is_there():
        return any(Path("/proc/self/environ").read_bytes())

    assert is_there()
    assert confined.value(is_there, environment.FEATURE) is False


def test_only_descriptors_that_were_handed_over_are_open(confined):
    def look():
        return len([name for name in os.listdir("/proc/self/fd") if int(name) > 2])

    with tempfile.TemporaryFile():
        # One of them is the channel of the answer, one lists the folder.
        assert confined.value(look) == 2
