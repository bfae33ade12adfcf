"""Laws of `fetch`: data sets of OpenML, from a stand-in for its server."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import numpy as np
import pytest

from setwise.datasets import DataError, fetch
from tests.support import dataset_files as files

ARFF = files.MULAN_SPARSE.replace(b"{0,1}", b"{FALSE,TRUE}").replace(b"3 1", b"3 TRUE")
ARFF = ARFF.replace(b"4 1", b"4 TRUE").replace(b"1 1,", b"1 TRUE,")


class Server(ThreadingHTTPServer):
    """Answers by path; what it was asked is kept."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.asked: list[str] = []
        self.missing_bytes = 0

    def offer(self, number=7, **changes):
        """A data set, with changes to its description."""
        about = {
            "id": str(number),
            "name": "texts",
            "version": "2",
            "format": "Sparse_ARFF",
            "url": f"{self.url}/files/{number}.arff",
            "md5_checksum": hashlib.md5(ARFF).hexdigest(),
            "default_target_attribute": "news,sport",
            "ignore_attribute": ["wind"],
        }
        self.answer(f"/json/data/{number}", {"data_set_description": about | changes})
        self.answers[f"/files/{number}.arff"] = (200, ARFF)

    def answer(self, path, value, status=200):
        self.answers[path] = (status, json.dumps(value).encode())


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self):
        path = unquote(self.path)
        self.server.asked.append(path)
        found = next((v for p, v in self.server.answers.items() if path.startswith(p)), None)
        error = {"error": {"code": "111", "message": "Unknown dataset"}}
        status, body = found or (412, json.dumps(error).encode())
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) - self.server.missing_bytes])

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        server.offer()
        yield server
        server.shutdown()
        thread.join()


def test_a_data_set_is_fetched_once(server, tmp_path):
    data = fetch(7, cache=tmp_path, url=server.url)
    assert data.name == "texts"
    assert data.source == "OpenML 7, version 2"
    assert data.feature_names.tolist() == ["sun", "rain=TRUE"]
    assert data.label_names.tolist() == ["news", "sport"]
    np.testing.assert_array_equal(data.Y.toarray(), [[1, 0], [0, 0], [0, 1], [1, 0]])
    asked = list(server.asked)
    again = fetch("7", cache=tmp_path, url=server.url)
    assert server.asked == asked
    np.testing.assert_array_equal(again.X.toarray(), data.X.toarray())


def test_a_name_is_the_active_data_set_of_the_highest_version(server, tmp_path):
    found = [{"did": 3, "version": 1}, {"did": 7, "version": 10}, {"did": 5, "version": "9"}]
    server.answer("/json/data/list/data_name/my texts/status", {"data": {"dataset": found}})
    assert fetch("my texts", cache=tmp_path, url=server.url).n_rows == 4
    assert any("my texts/status/active" in path for path in server.asked)
    server.answer(
        "/json/data/list/data_name/my texts/data_version/1/", {"data": {"dataset": found[1:2]}}
    )
    assert fetch("my texts", version=1, cache=tmp_path, url=server.url).n_rows == 4
    with pytest.raises(ValueError, match="a version goes with a name"):
        fetch(7, version=1, cache=tmp_path, url=server.url)


def test_options_are_those_of_arff(server, tmp_path):
    data = fetch(7, cache=tmp_path, url=server.url, labels=["rain", "news"], drop=["sport"])
    assert data.label_names.tolist() == ["rain", "news"]
    assert data.feature_names.tolist() == ["sun", "wind"]
    counted = fetch(7, cache=tmp_path, url=server.url, labels=-2)
    assert counted.label_names.tolist() == ["news", "sport"]


def test_without_a_network_what_was_fetched_is_read_and_the_rest_refused(tmp_path):
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        server.offer()
        fetch(7, cache=tmp_path, url=server.url)
        server.shutdown()
        thread.join()
    assert fetch(7, cache=tmp_path, url=server.url).n_rows == 4
    with pytest.raises(DataError, match=r"127\.0\.0\.1:\d+ cannot be reached .*without a network"):
        fetch(8, cache=tmp_path, url=server.url, timeout=5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"md5_checksum": "0" * 32}, "damaged on the way"),
        ({"url": "file:///etc/passwd"}, "address must begin with http"),
        ({"url": "/relative"}, "address must begin with http"),
        ({"format": "parquet"}, "only ARFF is read"),
        ({"default_target_attribute": None}, "name the labels"),
        ({"default_target_attribute": "nothing"}, "no attribute 'nothing'; known are"),
    ],
)
def test_a_description_that_does_not_fit_is_refused(changes, message, server, tmp_path):
    server.offer(**changes)
    with pytest.raises(DataError, match=message):
        fetch(7, cache=tmp_path, url=server.url)


def test_what_the_server_says_is_passed_on(server, tmp_path):
    with pytest.raises(DataError, match="412: 'Unknown dataset'"):
        fetch(99, cache=tmp_path, url=server.url)
    server.answer("/json/data/list", {"data": {"dataset": []}})
    with pytest.raises(DataError, match="no data set is named 'nothing'"):
        fetch("nothing", cache=tmp_path, url=server.url)
    server.answers["/json/data/7"] = (200, b"<html>")
    with pytest.raises(DataError, match="gives no JSON"):
        fetch(7, cache=tmp_path, url=server.url)


def test_a_file_that_is_cut_off_or_too_large_leaves_nothing(server, tmp_path):
    with pytest.raises(DataError, match="larger than 10 bytes"):
        fetch(7, cache=tmp_path, url=server.url, max_bytes=10)
    server.missing_bytes = 5
    with pytest.raises(DataError, match=r"cut off|cannot be reached"):
        fetch(7, cache=tmp_path / "other", url=server.url)
    left = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert left == ["description.json"]


def test_the_cache_is_in_the_users_folder(server, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    fetch(7, url=server.url)
    (path,) = tmp_path.rglob("data.arff")
    assert path.relative_to(tmp_path).parts[:2] == ("setwise", "openml")


def test_only_http_is_asked(tmp_path):
    with pytest.raises(ValueError, match="http"):
        fetch(7, cache=tmp_path, url=f"file://{tmp_path}")
