"""The worked example: yesterday's deployment decision, asked about today in a new session."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory import Memory
from memory.language import load_packs
from memory.testing import FakeClock


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A conversation of yesterday and today's question; `decided` stands in the fact, `topic` in the summary."""

    language: str
    yesterday: tuple[str, ...]
    today: str
    decided: str
    topic: str


EXAMPLES = (
    Example(
        language="es",
        yesterday=(
            "Estoy dudando con el deployment: ¿docker-compose en una sola máquina o Kubernetes?",
            "Docker-compose es más simple; Kubernetes reinicia lo que falla y escala mejor. ¿Cuántos servicios tenés?",
            "Son nueve servicios y van a ser más. Decidí usar Kubernetes para el deployment.",
            "Entonces empezá con un clúster chico y migrá primero los servicios sin estado.",
        ),
        today="¿Cómo quedó lo que decidimos ayer sobre el deployment?",
        decided="Kubernetes",
        topic="deployment",
    ),
    Example(
        language="en",
        yesterday=(
            "I can't make up my mind about the deployment: docker-compose on one box, or Kubernetes?",
            "Compose is simpler; Kubernetes restarts what fails and scales better. How many services do you have?",
            "Nine services, soon more. I decided to use Kubernetes for the deployment.",
            "Then begin with a small cluster and move the stateless services first.",
        ),
        today="What did we decide yesterday about the deployment?",
        decided="Kubernetes",
        topic="deployment",
    ),
    Example(
        language="it",
        yesterday=(
            "Sono indeciso sul deployment: docker-compose su una macchina sola oppure Kubernetes?",
            "Compose è più semplice; Kubernetes riavvia ciò che cade e scala meglio. Quanti servizi hai?",
            "Nove servizi, presto di più. Ho deciso di usare Kubernetes per il deployment.",
            "Allora comincia con un cluster piccolo e sposta prima i servizi senza stato.",
        ),
        today="Com'è finita con quello che abbiamo deciso ieri sul deployment?",
        decided="Kubernetes",
        topic="deployment",
    ),
    Example(
        language="zh",
        yesterday=(
            "部署的事我还在犹豫：用一台机器跑docker-compose，还是上Kubernetes？",
            "Compose更简单；Kubernetes能自动重启出错的服务，扩展也更方便。你有多少个服务？",
            "九个服务，以后还会更多。我决定用Kubernetes来部署。",
            "那就先建一个小集群，先把无状态的服务迁过去。",
        ),
        today="昨天我们关于部署的决定最后是什么？",
        decided="Kubernetes",
        topic="部署",
    ),
)


@pytest.mark.parametrize(
    "example", [each for each in EXAMPLES if each.language in load_packs()], ids=lambda example: example.language
)
async def test_yesterdays_decision_is_in_todays_small_request_and_is_confirmed_by_asking(
    tmp_path: Path, example: Example
) -> None:
    clock = FakeClock(datetime(2026, 1, 30, 16, tzinfo=UTC))
    async with Memory.open(tmp_path / "person.db", clock=clock) as memory:
        session = await memory.open_session()
        for number, content in enumerate(example.yesterday):
            await memory.add_turn(session.id, ("user", "assistant")[number % 2], content)  # type: ignore[arg-type]
            clock.advance(minutes=1)
        (fact,) = await memory.facts.list()
        assert fact.domain == "decisions"
        assert example.decided in fact.fact

        clock.advance(hours=17)
        session = await memory.open_session()
        await memory.run_pending()
        turn = await memory.add_turn(session.id, "user", example.today)
        context = await memory.assemble(session.id)

        assert [each.id for each in turn.confirmed] == [fact.id]
        assert (await memory.facts.get(fact.id)).last_confirmed_at == clock.now
        assert turn.learned == ()

        assert [item.id for item in context.sections["facts"].items] == [fact.id]
        summaries = [item.text for item in context.sections["summaries"].items]
        assert any(example.topic in text for text in summaries)
        assert any(example.decided in text for text in summaries)
        assert "2026-01-30" in context.messages[0]["content"]
        assert [message["role"] for message in context.messages] == ["system", "user"]
        assert context.messages[-1]["content"].endswith(example.today)
        assert context.tokens < 700
