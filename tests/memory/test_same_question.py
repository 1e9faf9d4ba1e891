"""When two questions are the same (D1): however put, and never across another number, name, person or direction."""

SAME = [
    ("How do I bake bread?", "What is the best way to bake bread?"),
    ("Can you tell me who wrote Dune?", "who wrote dune"),
    ("What's the difference between a COO and a CEO?", "What is the difference between CEO and COO?"),
    ("What does ad hoc mean?", "What is the meaning of ad hoc?"),
    ("How can I fix a flat tyre?", "How do you repair a flat tyre?"),
    ("¿Cómo puedo arreglar una bicicleta?", "¿Cómo se puede reparar una bicicleta?"),
    ("¿Qué significa efímero?", "¿Cuál es el significado de efímero?"),
    ("Come posso riparare una bicicletta?", "Come si fa a aggiustare una bicicletta?"),
    ("Che cosa significa effimero?", "Qual è il significato di effimero?"),
    ("怎么做番茄炒蛋？", "如何做番茄炒蛋？"),
    ("请问光合作用是什么意思？", "光合作用的含义是什么？"),
]
DIFFERENT = [
    ("How do I get from Rome to Paris?", "How do I get from Paris to Rome?"),
    ("Is there a train to Rome?", "Is there a train from Rome?"),
    ("What is 3 + 4?", "What is 3 + 5?"),
    ("Where do I work?", "Where do you work?"),
    ("How do I remember names?", "How do you remember names?"),
    ("Should I call Ana?", "Should I not call Ana?"),
    ("How do I sell my car?", "How do I sell your car?"),
    ("What is C?", "What is C++?"),
    ("When does Ana arrive?", "When did Ana arrive?"),
    ("Can I eat mushrooms raw?", "Should I eat mushrooms raw?"),
    ("¿Cómo voy de Madrid a Lugo?", "¿Cómo voy de Lugo a Madrid?"),
    ("¿Puedo comer gluten?", "¿No puedo comer gluten?"),
    ("¿Cuánto mide mi hermano?", "¿Cuánto mide tu hermano?"),
    ("Come vado da Roma a Bari?", "Come vado da Bari a Roma?"),
    ("Quanti anni ha Marta?", "Quanti anni ha Marco?"),
    ("从北京到上海怎么走？", "从上海到北京怎么走？"),
    ("我可以吃辣吗？", "我不可以吃辣吗？"),
    ("妈妈的生日是哪天？", "爸爸的生日是哪天？"),
]


async def test_the_same_question_in_other_words(open_memory):
    async with open_memory() as memory:
        for first, second in SAME:
            assert await memory.same_question(first, second), (first, second)


async def test_questions_that_only_look_alike(open_memory):
    async with open_memory() as memory:
        for first, second in DIFFERENT:
            assert not await memory.same_question(first, second), (first, second)
