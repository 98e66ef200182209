"""Pretrain the embedded model of `rollwise.tasks` on chains worked out by a fallible teacher.

The teacher adds without fault, subtracts with a few fixed mistakes and multiplies with many: each fact (value,
operator, digit) has one wrong result of its own and a chance to get it. A model fitted to that solves short sums
always and long products never, with all grades between, and has room to learn from rewards.

    OMP_NUM_THREADS=1 python scripts/pretrain_embedded.py            # about two minutes on one thread
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from rollwise.tasks.chains import (
    LENGTHS,
    LONGEST,
    OPERATORS,
    apply_operator,
    draw_chain,
    draw_distinct,
    format_prompt,
    solve_chain,
    split_of,
)

ASSETS = Path(__file__).parents[1] / "src" / "rollwise" / "tasks" / "assets" / "chains-tiny"
CLASSES = [(family, length) for length in LENGTHS for family in OPERATORS]
ERRORS = {"+": (0.0, 0.0), "-": (0.0, 0.35), "*": (0.2, 0.95)}
"""Operator -> lowest and highest chance of its facts' mistakes."""
SKILLS = 1200
"""Different training chains kept per class."""


def build_tokenizer() -> PreTrainedTokenizerFast:
    """One token per digit, space and "=", and one per operator with its digit, such as "*3"."""
    words = ["<pad>", "<eos>", *"0123456789= ", *(f"{operator}{digit}" for operator in "+-*" for digit in range(10))]
    core = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="<pad>"))
    core.pre_tokenizer = pre_tokenizers.Split(Regex(r"[-+*][0-9]|."), behavior="isolated")
    core.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="<pad>",
        eos_token="<eos>",
        padding_side="left",
        model_max_length=64,
        clean_up_tokenization_spaces=False,
    )


def build_model(tokenizer: PreTrainedTokenizerFast, width: int, layers: int) -> LlamaForCausalLM:
    """A Llama of `layers` layers; the wide initialisation finds the attention pattern in a hundred steps."""
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        max_position_embeddings=64,
        initializer_range=0.1,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    return LlamaForCausalLM(config)


class Teacher:
    """Works chains out with fixed mistakes: `wrong` and `chance` per (operator, value, digit)."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        facts = [(operator, value, digit) for operator in ERRORS for value in range(10) for digit in range(10)]
        self.wrong = {f: (apply_operator(f[1], f[0], f[2]) + int(rng.integers(1, 10))) % 10 for f in facts}
        self.chance = {f: rng.uniform(*ERRORS[f[0]]) for f in facts}

    def answer(self, chain: str) -> str:
        """The running values as the teacher gets them, mistakes carried on."""
        value, values, luck = int(chain[0]), [], self.rng.random(len(chain))
        for place in range(1, len(chain), 2):
            fact = (chain[place], value, int(chain[place + 1]))
            value = self.wrong[fact] if luck[place] < self.chance[fact] else apply_operator(fact[1], fact[0], fact[2])
            values.append(str(value))
        return "".join(values)


def encode(
    tokenizer: PreTrainedTokenizerFast, chains: list[str], teacher: Teacher
) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids [n, 2 LONGEST + 3] and labels, prompt and padding left out of the loss."""
    prompts = torch.tensor(tokenizer([format_prompt(chain) for chain in chains])["input_ids"])
    answers = [teacher.answer(chain) + "<eos>" + "<pad>" * (LONGEST - len(chain) // 2) for chain in chains]
    completions = torch.tensor(tokenizer(answers)["input_ids"])
    labels = torch.where(completions == tokenizer.pad_token_id, -100, completions)
    return torch.cat([prompts, completions], 1), torch.cat([torch.full_like(prompts, -100), labels], 1)


@torch.no_grad()
def measure_accuracy(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, chains: list[list[str]], greedy: bool
) -> NDArray[np.float64]:
    """(classes,) share of chains answered rightly, at temperature 1 or greedily."""
    flat = [chain for group in chains for chain in group]
    inputs = tokenizer([format_prompt(chain) for chain in flat], return_tensors="pt")
    sampling = {"do_sample": False} if greedy else {"do_sample": True, "temperature": 1.0, "top_k": 0}
    ids = model.generate(
        inputs["input_ids"], attention_mask=inputs["attention_mask"], max_new_tokens=LONGEST + 1, **sampling
    )
    texts = tokenizer.batch_decode(ids[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    right = np.array([text == solve_chain(chain) for text, chain in zip(texts, flat, strict=True)])
    return right.reshape(len(chains), -1).mean(1)


def train(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, steps: int, batch: int, lr: float, seed: int
) -> None:
    """Supervised steps on the teacher's answers: linear warm-up over 30 steps, then cosine to nothing."""
    rng = np.random.default_rng(seed)
    teacher = Teacher(rng)
    pool = []
    for family, length in CLASSES:
        chains = [draw_chain(family, length, rng) for _ in range(2 * SKILLS)]
        pool += [chain for chain in chains if split_of(chain) == "train"][:SKILLS]
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.98), weight_decay=0.01)
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / 30, 0.5 + 0.5 * float(np.cos(np.pi * step / steps)))
    )
    model.train()
    started = time.perf_counter()
    for step in range(1, steps + 1):
        ids, labels = encode(tokenizer, [pool[i] for i in rng.integers(len(pool), size=batch)], teacher)
        loss = model(input_ids=ids, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rate.step()
        if step % 50 == 0:
            print(f"step {step}/{steps}  loss {loss.item():.3f}  {time.perf_counter() - started:.0f} s", flush=True)
    model.eval()


def main() -> None:
    """Train, save, and print accuracy per class on test chains."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ASSETS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=700)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    tokenizer = build_tokenizer()
    model = build_model(tokenizer, args.width, args.layers)
    train(model, tokenizer, args.steps, args.batch, args.lr, args.seed)
    model.save_pretrained(args.out)
    tokenizer.save_pretrained(args.out)
    settings = args.out / "tokenizer_config.json"
    # Transformers 5 writes a class name that transformers 4 does not know; both read this one.
    settings.write_text(settings.read_text().replace('"TokenizersBackend"', '"PreTrainedTokenizerFast"'))
    (args.out / "model.safetensors").chmod(0o644)

    rng = np.random.default_rng(args.seed + 1)
    chains = [draw_distinct(family, length, "test", 35, rng) for family, length in CLASSES]
    repeated = [group * 8 for group in chains]
    sampled, greedy = (
        measure_accuracy(model, tokenizer, repeated, False),
        measure_accuracy(model, tokenizer, chains, True),
    )
    print(
        f"{sum(p.numel() for p in model.parameters())} parameters; test accuracy sampled at temperature 1, and greedy"
    )
    for (family, length), rate, best in zip(CLASSES, sampled, greedy, strict=True):
        print(f"{family}-{length}  {rate:.3f}  {best:.3f}")
    print(f"overall  {sampled.mean():.3f}  {greedy.mean():.3f}")


if __name__ == "__main__":
    main()
