"""Laws of threads: objects shared by many of them answer as they do to one."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from setwise import SetClassifier
from setwise.decoders import MinimumRisk
from setwise.spaces import SPACES
from setwise.targets import get_target

N_THREADS, PARENTS = 8, np.array([-1, 0, 0, 1])
SCORES = np.random.default_rng(0).normal(size=(3, len(PARENTS)))
TRUE = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 0, 1]], dtype=np.uint8)


@pytest.fixture(autouse=True)
def often():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def shared(ask, questions):
    """What each of several threads is answered, which asks everything in an order of its own."""
    orders = [np.random.default_rng(seed).permutation(len(questions)) for seed in range(N_THREADS)]

    def run(order):
        return {int(place): ask(questions[place]) for place in order}

    with ThreadPoolExecutor(N_THREADS) as pool:
        return list(pool.map(run, orders))


@pytest.mark.parametrize("name", SPACES)
def test_an_expectation_shared_by_threads_gives_each_its_own_q(name):
    """More q than are kept, so that they are forgotten and made again all the time."""
    space = SPACES[name](PARENTS)
    expectation = space.expectation(get_target("jaccard"))
    powers = np.linspace(-1.0, 1.0, 48).tolist()

    def ask(q):
        return expectation.moment(SCORES, TRUE, q).value

    expected = [ask(q) for q in powers]
    for answers in shared(ask, powers):
        for place, answer in answers.items():
            np.testing.assert_array_equal(answer, expected[place])


@pytest.mark.parametrize("name", ["f1", "jaccard", "hamming", "subset", "recall@1"])
def test_a_decoder_shared_by_threads_decides_the_same(name):
    """For numbers of labels that it has not seen."""
    tables = [np.random.default_rng(0).random((4, n_labels)) for n_labels in range(1, 13)]
    expected = [MinimumRisk(name).decode(table) for table in tables]
    decoder = MinimumRisk(name)
    for answers in shared(decoder.decode, tables):
        for place, answer in answers.items():
            np.testing.assert_array_equal(answer, expected[place])


def test_equal_spaces_of_several_threads_share_a_list_that_may_go_at_any_time():
    """The list of a space is kept by an equal one that another thread may drop."""
    target = get_target("jaccard")

    def ask(parents):
        space = SPACES["chain"](PARENTS)
        return space.mean(target, SCORES, TRUE, "utility", True).value

    (expected,) = {ask(None).tobytes()}
    for answers in shared(ask, [None] * 60):
        assert {answer.tobytes() for answer in answers.values()} == {expected}


@pytest.mark.parametrize("target", ["f1", "jaccard", "hamming", "subset", "recall@1"])
def test_a_decoder_of_several_spaces_decides_on_each_as_one_of_its_own(target):
    """Asked row by row by threads at once, so that what it keeps of a space changes hands."""
    spaces = [SPACES[name](PARENTS) for name in ("list", "sized", "slice", "backoff")]
    questions = [(space, SCORES[[row]]) for space in spaces for row in range(len(SCORES))]
    expected = [MinimumRisk(target).decode_scores(scores, space) for space, scores in questions]
    decoder = MinimumRisk(target)
    for answers in shared(lambda asked: decoder.decode_scores(*asked[::-1]), questions * 4):
        for place, answer in answers.items():
            np.testing.assert_array_equal(answer, expected[place % len(questions)])


@pytest.mark.parametrize("settings", [{}, {"space": "sized"}, {"surrogate": "binary_relevance"}])
def test_rows_predicted_one_by_one_by_threads_are_those_of_one_call(settings):
    """Kernels have no threads of the compiler's, so that its threading layer does not matter."""
    X = np.random.default_rng(1).normal(size=(24, 4))
    model = SetClassifier("f1", **settings).fit(X, X > 0.3)
    expected = model.predict(X)
    for answers in shared(lambda row: model.predict(X[[row]])[0], range(len(X))):
        for row, answer in answers.items():
            np.testing.assert_array_equal(answer, expected[row])
