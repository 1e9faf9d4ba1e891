"""Embeddings over HTTP, against a real server on loopback."""

import socket

import numpy as np
import pytest

from assistant.embeddings import OpenAICompatibleEmbedder
from assistant.testing import OpenAIServer, Reply, embeddings
from memory import Memory
from memory.errors import EmbedderError
from memory.testing import start_python

KEY = "sk-zebra-quartz-0123456789"


@pytest.fixture
def server():
    with OpenAIServer() as running:
        yield running


@pytest.fixture
async def make(server):
    made: list[OpenAICompatibleEmbedder] = []

    def embedder(**changes):
        given = {"base_url": server.base_url, "model": "tiny", "api_key": KEY, "retries": 0, **changes}
        made.append(OpenAICompatibleEmbedder(**given))
        return made[-1]

    yield embedder
    for each in made:
        await each.aclose()


async def failure(embedder: OpenAICompatibleEmbedder) -> str:
    with pytest.raises(EmbedderError) as caught:
        await embedder.embed(["tea"])
    assert KEY not in str(caught.value)
    return str(caught.value)


async def test_texts_become_rows_of_unit_length_and_the_key_travels_in_the_header(server, make):
    vectors = await make().embed(["tea", "coffee", "tea"])
    assert vectors.shape == (3, 8)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1])
    assert (vectors[0] == vectors[2]).all()
    [asked] = server.history
    assert asked.body == {"model": "tiny", "input": ["tea", "coffee", "tea"], "encoding_format": "float"}
    assert asked.headers["authorization"] == f"Bearer {KEY}"


async def test_many_texts_go_in_batches_and_keep_their_order(server, make):
    texts = [f"text {number}" for number in range(5)]
    vectors = await make(batch_texts=2).embed(texts)
    assert [len(asked.body["input"]) for asked in server.history] == [2, 2, 1]
    assert (vectors == await make().embed(texts)).all()


async def test_an_answer_in_another_order_is_put_right(server, make):
    answer = embeddings(["tea", "coffee"], 8)
    server.enqueue(Reply(body={**answer, "data": list(reversed(answer["data"]))}))
    shuffled = await make().embed(["tea", "coffee"])
    assert (shuffled == await make().embed(["tea", "coffee"])).all()


async def test_a_dimension_is_asked_for_and_checked(server, make):
    assert (await make(dimension=4).embed(["tea"])).shape == (1, 4)
    assert server.history[0].body["dimensions"] == 4
    server.enqueue(Reply(body=embeddings(["tea"], 3)))
    assert "embeddings.dimension says 4" in await failure(make(dimension=4))


async def test_no_text_is_no_row_of_the_right_length_and_an_empty_one_is_not_sent_empty(server, make):
    assert (await make().embed([])).shape == (0, 8)
    await make().embed(["", "x" * 100_000])
    first, second = server.history[-1].body["input"]
    assert first == "."
    assert len(second) < 10_000


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply(body=embeddings(["a", "b"], 8)), "2 vectors for 1 texts"),
        (Reply(body=embeddings([], 8)), "0 vectors for 1 texts"),
        (Reply(body={"data": [{"index": 0, "embedding": ["x"]}]}), "no vector of numbers"),
        (Reply(body={"data": [{"index": 0, "embedding": []}]}), "no vector of numbers"),
        (Reply(body={"hello": "world"}), "embeddings.base_url"),
        (Reply(body=[1, 2]), "embeddings.base_url"),
        (Reply(text="<html>", content_type="text/html"), "embeddings.base_url"),
        (Reply(text="{broken"), "embeddings.base_url"),
        (Reply(status=400, body={"error": {"message": KEY}}), "refused the request"),
        (Reply(status=401, body={"error": {"message": f"bad key {KEY}"}}), "Correct embeddings.api_key"),
        (Reply(status=403, body={}), "does not let this key"),
        (Reply(status=404, text="nothing here"), "Correct embeddings.model or embeddings.base_url"),
        (Reply(status=429, body={}), "wants fewer requests"),
        (Reply(status=500, text="oops"), "status 500"),
    ],
)
async def test_what_is_no_embedding_is_an_error_that_says_what_to_do(server, make, reply, told):
    server.enqueue(reply)
    sentence = await failure(make())
    assert told in sentence
    assert server.base_url in sentence


async def test_a_slow_server_is_not_waited_for(server, make):
    server.enqueue(Reply(delay_seconds=5, body={}))
    assert "embeddings.timeout_seconds" in await failure(make(timeout_seconds=0.1))


async def test_a_server_that_is_not_there_is_told(make):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    assert "cannot be reached" in await failure(make(base_url=f"http://127.0.0.1:{port}/v1"))


async def test_a_passing_failure_is_tried_again(server, make):
    server.enqueue(Reply(status=500, body={}))
    assert (await make(retries=1).embed(["tea"])).shape == (1, 8)
    assert len(server.history) == 2


def test_the_name_of_the_model_tells_host_model_and_dimension_and_no_secret():
    embedder = OpenAICompatibleEmbedder(
        base_url=f"https://ana:{KEY}@host:8443/v1", model="tiny", api_key=KEY, dimension=4
    )
    assert embedder.model == "host:8443/tiny/4"
    assert OpenAICompatibleEmbedder(base_url="https://host/v1", model="tiny").model == "host/tiny"


async def test_a_password_in_the_address_is_not_in_the_errors(server, make):
    server.enqueue(Reply(status=404, body={}))
    assert "secret" not in await failure(make(base_url=server.base_url.replace("://", "://ana:secret@")))


async def test_embedding_inside_a_transaction_is_a_mistake(tmp_path, server, make):
    async with Memory.open(tmp_path / "me.db") as memory, memory.database.transaction():
        with pytest.raises(RuntimeError, match="inside a transaction"):
            await make().embed(["tea"])
    assert server.history == []


async def test_a_memory_works_with_it_and_its_file_holds_no_key(tmp_path, make):
    async with Memory.open(tmp_path / "me.db", embedder=make()) as memory:
        await memory.facts.add("I like tea")
        assert [each.fact for each in await memory.facts.list()] == ["I like tea"]
        assert (await memory.index.model()).endswith("/tiny")
    assert KEY.encode() not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def test_it_is_made_without_loading_openai():
    script = (
        "import sys\nfrom assistant.embeddings import OpenAICompatibleEmbedder\n"
        "OpenAICompatibleEmbedder(base_url='http://x/v1', model='m').model\n"
        "print('openai' in sys.modules)"
    )
    with start_python(script) as process:
        output, errors = process.communicate(timeout=60)
    assert (output, errors) == ("False\n", "")
