"""The model: shared prompts, caches and ragged groups change nothing but speed."""

from __future__ import annotations

import pytest
import torch

from rollwise.lab.model import END, PAD, Size, TinyLM, get_size
from rollwise.types import RollwiseError

P, T, V = 5, 6, 11
COUNTS = torch.tensor([3, 0, 1, 7])


@pytest.fixture(scope="module")
def model() -> TinyLM:
    torch.manual_seed(0)
    return TinyLM(Size(16, 2, 2), V, P + T)


@pytest.fixture(scope="module")
def prompts() -> torch.Tensor:
    return torch.randint(2, V, (4, P), generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def noise() -> torch.Tensor:
    return torch.rand(int(COUNTS.sum()), T, generator=torch.Generator().manual_seed(2))


def rows_of(counts: torch.Tensor) -> torch.Tensor:
    return torch.repeat_interleave(torch.arange(len(counts)), counts)


def generate_without_cache(model: TinyLM, prompts: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
    """Completions [n, T] by running whole sequences through the plain pass, one at a time and word by word; the word
    PAD may be drawn like any other."""
    found = torch.full((len(prompts), noise.shape[1]), PAD)
    for row, prompt in enumerate(prompts):
        sequence = prompt.tolist()
        for place in range(noise.shape[1]):
            chances = torch.softmax(model(torch.tensor([sequence]))[0, -1], -1)
            word = int((chances.cumsum(-1) <= noise[row, place]).sum())
            found[row, place] = word
            sequence.append(word)
            if word == END:
                break
    return found


def test_generation_with_caches_equals_generation_without(
    model: TinyLM, prompts: torch.Tensor, noise: torch.Tensor
) -> None:
    with torch.no_grad():
        made = model.generate(model.prefill(prompts), COUNTS, noise)
        plain = generate_without_cache(model, prompts[rows_of(COUNTS)], noise)
    assert made.tokens.tolist() == plain.tolist()
    ends = [words.index(END) + 1 if END in words else T for words in plain.tolist()]
    assert made.lengths.tolist() == ends


def test_every_prompt_gets_exactly_its_count_in_order(
    model: TinyLM, prompts: torch.Tensor, noise: torch.Tensor
) -> None:
    with torch.no_grad():
        together = model.generate(model.prefill(prompts), COUNTS, noise)
        alone = model.generate(model.prefill(prompts[3:]), torch.tensor([7]), noise[4:])
    assert together.tokens.shape == (11, T)
    assert together.tokens[4:].tolist() == alone.tokens.tolist()


def test_logprobs_at_generation_equal_those_of_the_training_pass(
    model: TinyLM, prompts: torch.Tensor, noise: torch.Tensor
) -> None:
    with torch.no_grad():
        made = model.generate(model.prefill(prompts), COUNTS, noise)
        again = model.logprobs(prompts, made.tokens, rows_of(COUNTS))
    mask = torch.arange(T) < made.lengths[:, None]
    assert mask.sum() > 20
    torch.testing.assert_close(made.logprobs, again * mask, atol=2e-6, rtol=0)


def test_the_gradient_through_shared_prompts_equals_that_of_whole_sequences(
    model: TinyLM, prompts: torch.Tensor
) -> None:
    rows = rows_of(COUNTS)
    words = torch.randint(2, V, (len(rows), T), generator=torch.Generator().manual_seed(3))
    gain = torch.randn(len(rows), T, generator=torch.Generator().manual_seed(4))

    shared = torch.autograd.grad((model.logprobs(prompts, words, rows) * gain).sum(), list(model.parameters()))
    whole = model(torch.cat([prompts[rows], words], 1))[:, P - 1 : -1].log_softmax(-1)
    found = whole.gather(2, words[:, :, None])[:, :, 0]
    plain = torch.autograd.grad((found * gain).sum(), list(model.parameters()))

    assert any(part.abs().max() > 0.1 for part in plain)
    for left, right in zip(shared, plain, strict=True):
        torch.testing.assert_close(left, right, atol=1e-4, rtol=1e-4)


def test_one_word_completions_need_no_second_pass(model: TinyLM, prompts: torch.Tensor) -> None:
    logits = model.logits(prompts, torch.full((2, 1), 3), torch.tensor([2, 0]))
    torch.testing.assert_close(logits[:, 0], model(prompts)[[2, 0], -1])


def test_words_are_drawn_in_proportion_to_their_chances(model: TinyLM, prompts: torch.Tensor) -> None:
    draws = 4000
    even = ((torch.arange(draws) + 0.5) / draws)[:, None]
    with torch.no_grad():
        made = model.generate(model.prefill(prompts[:1]), torch.tensor([draws]), even)
        chances = torch.softmax(model(prompts[:1])[0, -1], -1)
    shares = torch.bincount(made.tokens[:, 0], minlength=V) / draws
    # evenly spaced noise can be off by one draw at either end of a word's interval
    assert (shares - chances).abs().max() <= 2 / draws


def test_nothing_follows_the_end_and_greedy_takes_the_likeliest_word(model: TinyLM, prompts: torch.Tensor) -> None:
    with torch.no_grad():
        noise = torch.rand(400, T, generator=torch.Generator().manual_seed(5))
        made = model.generate(model.prefill(prompts), torch.full((4,), 100), noise)
        greedy = model.generate(model.prefill(prompts), torch.ones(4, dtype=torch.long), None)
        likeliest = model(torch.cat([prompts, greedy.tokens], 1))[:, P - 1 : -1].argmax(-1)
    ended = (made.tokens == END).cumsum(1)
    after = (ended - (made.tokens == END).long()) > 0
    assert after.any()
    assert (made.tokens[after] == PAD).all() and (made.logprobs[after] == 0).all()
    mask = torch.arange(T) < greedy.lengths[:, None]
    assert (greedy.tokens == likeliest)[mask].all()


@pytest.mark.parametrize(("name", "low", "high"), [("tiny", 9e4, 1.3e5), ("small", 7e5, 9e5)])
def test_sizes_are_what_they_say(name: str, low: float, high: float) -> None:
    assert low < sum(weight.numel() for weight in TinyLM(get_size(name), 20, 30).parameters()) < high


def test_an_unknown_size_names_the_nearest() -> None:
    with pytest.raises(RollwiseError, match="size: no 'tinny'; did you mean 'tiny'"):
        get_size("tinny")
