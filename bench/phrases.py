"""A conversation without end, made from our own phrases: several subjects in four languages, the same every time."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# language -> subject -> (what the user says, what the assistant says); {n}, {who} and {day} vary
PHRASES: dict[str, dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "en": {
        "garden": (
            (
                "I counted {n} tomato plants along the south wall this morning, and {who} says they stand too close.",
                "The slugs ate the lettuce again, so on {day} I put copper tape around the raised bed.",
                "How often should I water the beans when it stays above {n} degrees all week?",
                "I would like herbs near the kitchen door, mostly basil and thyme, because {who} cooks a lot.",
                "The pear tree has brown spots on its leaves and I do not know whether to cut it back.",
            ),
            (
                "Tomatoes want about {n} centimetres between them; pull out the weakest and the rest will catch up.",
                "Copper helps for a while. Check under the boards on {day} evening, that is where slugs spend the day.",
                "Water deeply every second day, in the morning, and mulch with straw so that the soil keeps it.",
                "Thyme likes it dry and basil does not, so give each its own pot and ask {who} which one is used more.",
                "Brown spots are usually scab; rake up the fallen leaves and prune in late winter, not now.",
            ),
        ),
        "release": (
            (
                "The release slipped again: {n} tests fail on the build machine and none of them fails on my laptop.",
                "{who} wants to ship on {day} without the new export, and I am not sure that is wise.",
                "Can we run the migration in two steps, so that the old servers keep working for an hour?",
                "The log shows {n} timeouts, all of them against the payment service and all after midnight.",
                "I changed the retry to three attempts with a growing pause, but the queue still fills up.",
            ),
            (
                "Compare the time zones first: a build machine in UTC breaks date tests that pass everywhere else.",
                "Shipping without the export is fine if a switch hides it; tell {who} in one line what is missing.",
                "Yes: add the new column first, write to both for {n} minutes, then remove the old one on {day}.",
                "Timeouts after midnight smell like a backup job. Look at what starts at that hour on the database.",
                "A queue that fills up needs a limit. Refuse new work above {n} entries instead of retrying for ever.",
            ),
        ),
    },
    "es": {
        "mudanza": (
            (
                "Ya tengo {n} cajas listas para la mudanza, pero {who} dice que faltan todas las del sótano.",
                "El dueño nos entrega las llaves el {day} y todavía no sabemos quién lleva el piano.",
                "¿Conviene contratar un camión grande o hacer {n} viajes con la furgoneta de mi hermano?",
                "Quiero pintar el pasillo antes de meter los muebles, en un color claro que no se ensucie.",
                "La compañía de la luz pide una lectura del contador y un contrato nuevo antes de fin de mes.",
            ),
            (
                "Marcá cada caja con el cuarto al que va; con {n} cajas sin marcar vas a perder un día entero.",
                "Para el piano hace falta gente que sepa: pedí dos presupuestos antes del {day} y compará el seguro.",
                "Un camión grande sale más barato que {n} viajes si hay más de veinte kilómetros entre las casas.",
                "Un blanco roto lavable aguanta bien en un pasillo; dejalo secar dos días y después metés los muebles.",
                "Sacale una foto al contador el día de la entrega y mandala con el contrato: nadie discute después.",
            ),
        ),
        "estudio": (
            (
                "Me quedan {n} temas para el examen y el {day} tengo que trabajar todo el día.",
                "{who} me pasó sus apuntes de historia, pero están escritos a mano y no entiendo la mitad.",
                "¿Es mejor repasar un poco todos los días o dedicar un día entero a cada tema?",
                "En el simulacro saqué {n} puntos y casi todos los errores fueron por no leer bien la pregunta.",
                "Quiero hacer fichas con las fechas importantes para llevarlas en el colectivo.",
            ),
            (
                "Con {n} temas, separá los que caen siempre de los que no; el {day} dejalo para leer fichas nada más.",
                "Pedile a {who} que te explique en voz alta lo que no se lee: explicar también le sirve para repasar.",
                "Un poco cada día rinde más: lo que se olvida y se vuelve a estudiar se recuerda mejor.",
                "Subrayá en la pregunta lo que te piden antes de contestar; eso solo te da unos {n} puntos más.",
                "Una fecha por ficha y del otro lado por qué importa; sin el porqué las fechas se olvidan enseguida.",
            ),
        ),
    },
    "it": {
        "cucina": (
            (
                "Sabato siamo in {n} a tavola e {who} non mangia carne, quindi pensavo a una parmigiana.",
                "Il pane oggi è venuto basso: l'ho lasciato lievitare solo due ore e in cucina faceva freddo.",
                "Quanto tempo prima posso preparare il ragù se lo servo {day} a pranzo?",
                "Il forno scalda più a destra che a sinistra e le torte vengono sempre storte.",
                "Vorrei un dolce semplice con le mele, senza burro, che piaccia anche ai bambini.",
            ),
            (
                "Per {n} persone servono due teglie; friggi le melanzane il giorno prima e lasciale scolare bene.",
                "Con il freddo raddoppia i tempi, oppure metti l'impasto nel forno spento con la luce accesa.",
                "Il ragù migliora in due giorni: cuocilo prima di {day} e scaldalo piano con un mestolo d'acqua.",
                "Gira la teglia a metà cottura e abbassa di {n} gradi; poi compra un termometro, costa poco.",
                "Una torta all'olio con le mele a fette sottili: mescola poco l'impasto e resterà soffice.",
            ),
        ),
        "viaggio": (
            (
                "Partiamo {day} con {n} amici e nessuno ha ancora prenotato i traghetti per l'isola.",
                "{who} preferisce il treno notturno, ma io in treno non dormo mai più di due ore.",
                "È meglio cambiare i soldi qui o ritirarli là con la carta?",
                "L'albergo chiede una caparra di {n} euro e non la restituisce se cambiamo le date.",
                "Vorrei vedere il museo la mattina presto, prima che arrivino i gruppi.",
            ),
            (
                "I traghetti di {day} si riempiono presto: prenotate oggi almeno le macchine, i passeggeri dopo.",
                "Con il treno notturno risparmiate una notte; tappi, mascherina e la cuccetta in alto aiutano.",
                "Ritira là con la carta, ma controlla prima la commissione: oltre {n} euro conviene una volta sola.",
                "Chiedi una tariffa che si possa cambiare, anche se costa un po' di più: le date si spostano sempre.",
                "Compra il biglietto con l'orario delle nove e comincia dall'ultimo piano, tutti fanno il contrario.",
            ),
        ),
    },
    "zh": {
        "健身": (
            (
                "这周我跑了{n}公里，膝盖外侧有点疼，{who}说是跑鞋该换了。",
                "教练让我{day}练腿，可是我前一天要加班到很晚。",
                "早上空腹跑步和晚上跑步，哪一个更适合想减脂的人？",
                "体重还是没有变化，不过腰围比上个月少了{n}厘米。",
            ),
            (
                "膝盖外侧疼先停两天，鞋子跑了{n}百公里以上就该换，恢复以后从慢跑开始。",
                "加班以后睡眠不够，{day}就只做拉伸，把练腿挪到后一天，效果反而更好。",
                "什么时候跑差别不大，能坚持的时间就是最好的时间，减脂主要还是看吃了多少。",
                "腰围少了{n}厘米说明脂肪在减少，体重不变是因为肌肉多了，继续保持就好。",
            ),
        ),
        "装修": (
            (
                "厨房的瓷砖选了{n}款样品，{who}喜欢灰色的，我觉得白色的更亮。",
                "工人说{day}才能来改水电，可是橱柜公司要先量尺寸。",
                "阳台要不要封起来？冬天风很大，但是封了以后晾衣服不方便。",
                "预算已经超了{n}千块，主要是木地板和灯具买贵了。",
            ),
            (
                "厨房油烟大，灰色耐脏，白色显亮，可以墙面用白色，地面用灰色，两个人都满意。",
                "先让橱柜公司来看一次，把插座的位置标在墙上，{day}改水电的时候照着做。",
                "可以只封一半，留一扇能全开的窗，冬天关上，平时晾衣服也不受影响。",
                "超了{n}千块的话，灯具可以先买必要的几盏，剩下的住进去以后再慢慢添。",
            ),
        ),
    },
}
NAMES = {
    "en": ("Martha", "Oliver", "Priya"),
    "es": ("Lucía", "Ramón", "Inés"),
    "it": ("Chiara", "Paolo", "Nadia"),
    "zh": ("小王", "李姐", "老张"),
}
DAYS = {
    "en": ("Monday", "Wednesday", "Friday"),
    "es": ("lunes", "miércoles", "viernes"),
    "it": ("lunedì", "mercoledì", "venerdì"),
    "zh": ("星期一", "星期三", "星期五"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One message of the conversation."""

    role: str
    language: str
    subject: str
    content: str


def conversation(seed: int, lengths: Sequence[int]) -> Iterator[Line]:
    """User and assistant in turn; a subject lasts some exchanges, then another one comes, perhaps in another language.

    `lengths` are the numbers of phrases a message may have, each as likely as the others.
    """
    chance = random.Random(seed)
    places = [(language, subject) for language, subjects in PHRASES.items() for subject in subjects]
    here: tuple[str, str] | None = None
    while True:
        language, subject = here = chance.choice([place for place in places if place != here])
        for _ in range(chance.randint(4, 9)):
            for role, phrases in zip(("user", "assistant"), PHRASES[language][subject], strict=True):
                text = _message(chance, phrases, language, chance.choice(lengths))
                yield Line(role=role, language=language, subject=subject, content=text)


def _message(chance: random.Random, phrases: tuple[str, ...], language: str, length: int) -> str:
    picked: list[str] = []
    while len(picked) < length:
        picked += chance.sample(phrases, k=min(len(phrases), length - len(picked)))
    filled = [
        phrase.format(n=chance.randint(2, 40), who=chance.choice(NAMES[language]), day=chance.choice(DAYS[language]))
        for phrase in picked
    ]
    return ("" if language == "zh" else " ").join(filled)
