"""Files appear whole or not at all, and what stops a writing names the file."""

import errno
import os

import pytest

from setwise.atomic_write import opened_whole, write_whole

resource = pytest.importorskip("resource")


@pytest.fixture
def small_files():
    """No file of this process may grow beyond 1,000 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("n_bytes", [5_000, 5_000_000])
def test_a_full_disk_names_the_file_and_leaves_the_old_one(n_bytes, tmp_path, small_files):
    path = tmp_path / "model.skops"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match=r"model\.skops") as error:
        write_whole(path, b"0" * n_bytes)
    assert error.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.skops"]


def test_a_disk_that_cannot_be_flushed_names_the_file(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*report\.html'"):
        write_whole(tmp_path / "report.html", b"page")
    assert not os.listdir(tmp_path)


def test_a_folder_that_cannot_be_written_in_names_the_file_itself(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        write_whole(tmp_path / "none" / "a.csv", b"")
    assert error.value.filename == str(tmp_path / "none" / "a.csv")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
def test_a_full_device_is_named(tmp_path):
    from pathlib import Path

    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"):
        write_whole(Path("/dev/full"), b"0")


def test_an_error_of_something_else_is_left_as_it_is(tmp_path):
    def written():
        with opened_whole(tmp_path / "a.csv") as file:
            file.write(b"half")
            raise OSError("the network is gone")

    with pytest.raises(OSError, match=r"^the network is gone$") as error:
        written()
    assert error.value.filename is None
    assert not os.listdir(tmp_path)
