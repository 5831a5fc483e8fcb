"""Tokenizers of merges: two vocabularies and the tokens that Hugging Face's library gives to texts, plain and as turns of a talk.

    python tests/oracle/make_merges.py

wants PyPI's `tokenizers` and `jinja2`, and writes tests/models/tokenizers/merges.json: for each way of splitting words (GGUF's names, `gpt-2` and `smollm`)
tokens, merges and, by the text's number, its tokens; then the tokens of a talk of one turn by ChatML's template.
"""

import json
import pathlib
import random

import jinja2
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).resolve().parent

#: Texts that the vocabularies are trained on: enough that words, numbers, spaces and other scripts are joined.
CORPUS = [
    "Once upon a time there was a little board that ran a network. It wasn't large, but it was quick.",
    "They're said to have measured 1024 bytes in 1987, and 2048 in 2024; we'll see what they've got.",
    "for (int i = 0; i < 10; i++) {\n    sum += weights[i] * inputs[i];\n}\n\n\treturn sum;",
    "Ein Netz für kleine Geräte, größer als nötig. Où est l'été? Él comió piñas en otoño.",
    "Маленькая плата считает быстро. 小さなボードは速い。작은 보드. लोग नमस्ते कहते हैं।",
    "The the the then there that this these those thing think thinking thoughts.",
    "spaces   and    tabs\t\tand\n\n\nlines  \n end.",
]

#: Pieces that random texts are made of.
PARTS = [
    "the", " the", "The", " time", " 1987", "12", " ", "  ", "   ", "\n", "\n\n", "\t", "'s", "'re", "'LL", "'", "don't", "é", "größer",
    " плата", "ボード", "नमस्ते", "हैं", "🙂", "e\u0301", "\u00a0", "\u2003", "½", "Ⅷ", "²", "_", "--", "...", "!?", " (", "){", "<|im_end|>", "\u200d", "ª", "Ⓐ",
    "中", "\r\n", "x86", "3D", "·", "\ufeff", "\u0085",
]

TEMPLATE = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n"
    "You are a board.<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def trained(digits: bool) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    words = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    each = [pre_tokenizers.Digits(individual_digits=True)] if digits else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*each, words])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=520,
        special_tokens=CONTROL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS * 3, trainer)
    return tokenizer


def plain(tokenizer: Tokenizer) -> Tokenizer:
    """The same, which takes no text for a token of control."""
    made = json.loads(tokenizer.to_str())
    made["added_tokens"] = []
    return Tokenizer.from_str(json.dumps(made))


def texts() -> list[str]:
    rng = random.Random(20261130)
    made = ["".join(rng.choices(PARTS, k=rng.randint(1, 12))) for _ in range(150)]
    return ["", *CORPUS, *made]


def main() -> None:
    all_texts, turns = texts(), ["What is 2 + 2?", "Hello", "Say 'the' 10 times,\nplease"]
    result = {"texts": all_texts, "turns": turns, "template": TEMPLATE, "end": 2}
    for name, digits in [("gpt-2", False), ("smollm", True)]:
        tokenizer = trained(digits)
        vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda pair: pair[1])
        without = plain(tokenizer)
        conversation = jinja2.Environment(trim_blocks=True, lstrip_blocks=True).from_string(TEMPLATE)
        talked = [
            conversation.render(messages=[{"role": "user", "content": turn}], add_generation_prompt=True)
            for turn in turns
        ]
        result[name] = {
            "tokens": [token for token, _ in vocabulary],
            "merges": [" ".join(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]],
            "ids": [without.encode(text).ids for text in all_texts],
            "turns": [tokenizer.encode(text).ids for text in talked],
        }
        assert all(without.decode(ids) == text for ids, text in zip(result[name]["ids"], all_texts))
    path = HERE.parent / "models" / "tokenizers" / "merges.json"
    path.parent.mkdir(exist_ok=True)
    lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=True)}" for key, value in result.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


main()
