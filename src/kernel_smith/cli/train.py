"""`kernel-smith train`: a model that proposes better kernels, from steps that were measured."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernel_smith.cli.options import EngineAddress, Lanes, Quiet
from kernel_smith.cli.output import console, print_json, print_next, progress
from kernel_smith.records.counts import counted

if TYPE_CHECKING:
    from kernel_smith.training.running import Trained

app = typer.Typer(
    help="Train a model on the steps of runs.", no_args_is_help=True, rich_markup_mode=None
)

Data = Annotated[Path, typer.Argument(help="What `kernel-smith data build` wrote.")]
Model = Annotated[Path | None, typer.Option(help="A model's folder, or a GGUF file.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Where everything goes.")]
Config = Annotated[Path | None, typer.Option(help="A TOML file with settings.")]
Steps = Annotated[int | None, typer.Option(help="Updates of the weights, in all.")]
Rate = Annotated[float | None, typer.Option(help="The learning rate.")]
Rank = Annotated[int | None, typer.Option(help="Of the adapter that is trained.")]
Full = Annotated[bool, typer.Option("--full", help="Train all weights, no adapter.")]
MicroBatch = Annotated[int | None, typer.Option(help="Sequences in memory at once.")]
Length = Annotated[int | None, typer.Option(help="Longest question and answer, in tokens.")]
Seed = Annotated[int | None, typer.Option(help="For whatever is drawn at random.")]
SaveEvery = Annotated[int | None, typer.Option(help="Steps between checkpoints.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@app.command()
def sft(
    data: Data,
    model: Model = None,
    output: Output = None,
    config: Config = None,
    steps: Steps = None,
    batch: Annotated[int | None, typer.Option(help="Examples per step.")] = None,
    learning_rate: Rate = None,
    rank: Rank = None,
    full: Full = False,
    micro_batch: MicroBatch = None,
    sequence_length: Length = None,
    seed: Seed = None,
    save_every: SaveEvery = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn from answers that were good. The same command again goes on where it stopped."""
    from kernel_smith.training.config import SftSettings, read_settings
    from kernel_smith.training.running import is_main_process
    from kernel_smith.training.sft import train_sft

    given: dict[str, Any] = {"data": data, "model": model, "output": output, "steps": steps}
    given |= {"batch": batch, "learning_rate": learning_rate, "micro_batch": micro_batch}
    given |= {"sequence_length": sequence_length, "seed": seed, "save_every": save_every}
    settings = read_settings(SftSettings, config, _given(given, rank, full))
    with progress(quiet or json or not is_main_process()) as report:
        trained = train_sft(settings, report, again=_again())
    _show(trained, as_json=json)


@app.command()
def rl(
    data: Data,
    model: Model = None,
    output: Output = None,
    config: Config = None,
    steps: Steps = None,
    entries: Annotated[int | None, typer.Option(help="Questions per step.")] = None,
    samples: Annotated[int | None, typer.Option(help="Answers to each question.")] = None,
    max_new_tokens: Annotated[int | None, typer.Option(help="Of an answer.")] = None,
    advantage: Annotated[str | None, typer.Option(help="group or leave-one-out.")] = None,
    learning_rate: Rate = None,
    rank: Rank = None,
    full: Full = False,
    micro_batch: MicroBatch = None,
    sequence_length: Length = None,
    seed: Seed = None,
    save_every: SaveEvery = None,
    engine: EngineAddress = None,
    lanes: Lanes = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn from what the judge says of one's own answers.

    The same command again goes on where it stopped.
    """
    from kernel_smith.evaluation.engines import open_engine
    from kernel_smith.training.config import RlSettings, read_settings
    from kernel_smith.training.rl import train_rl
    from kernel_smith.training.running import is_main_process

    given: dict[str, Any] = {"data": data, "model": model, "output": output, "steps": steps}
    given |= {"entries": entries, "samples": samples, "max_new_tokens": max_new_tokens}
    given |= {"advantage": advantage, "learning_rate": learning_rate, "micro_batch": micro_batch}
    given |= {"sequence_length": sequence_length, "seed": seed, "save_every": save_every}
    settings = read_settings(RlSettings, config, _given(given, rank, full))
    silent = quiet or json or not is_main_process()
    with progress(silent) as report, open_engine(engine, lanes) as evaluator:
        trained = train_rl(settings, evaluator, report, again=_again())
    _show(trained, as_json=json)


@app.command()
def chooser(
    data: Annotated[Path, typer.Argument(help="What `kernel-smith data choices` wrote.")],
    model: Annotated[
        Path | None,
        typer.Option(help="A model's folder, a GGUF file, or an adapter to go on with."),
    ] = None,
    output: Output = None,
    config: Config = None,
    objective: Annotated[
        str | None, typer.Option(help="sft: imitate what gained; rl: expect the most.")
    ] = None,
    steps: Steps = None,
    batch: Annotated[int | None, typer.Option(help="Questions per step.")] = None,
    learning_rate: Rate = None,
    entropy: Annotated[float | None, typer.Option(help="What being undecided is worth.")] = None,
    rank: Rank = None,
    full: Full = False,
    micro_batch: MicroBatch = None,
    sequence_length: Length = None,
    seed: Seed = None,
    save_every: SaveEvery = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn which of the mutator's edits to choose, by one letter.

    The same command again goes on where it stopped. The checkpoint counts that was best on families
    of tasks that were not learnt from.
    """
    from kernel_smith.training.choices.train import train_chooser
    from kernel_smith.training.config import ChooserSettings, read_settings
    from kernel_smith.training.running import is_main_process

    given: dict[str, Any] = {"data": data, "model": model, "output": output, "steps": steps}
    given |= {"objective": objective, "batch": batch, "learning_rate": learning_rate}
    given |= {"entropy": entropy, "micro_batch": micro_batch, "seed": seed}
    given |= {"sequence_length": sequence_length, "save_every": save_every}
    settings = read_settings(ChooserSettings, config, _given(given, rank, full))
    with progress(quiet or json or not is_main_process()) as report:
        trained = train_chooser(settings, report, again=_again())
    if json:
        _show(trained, as_json=True)
    elif is_main_process():
        adapter = trained.final / "adapter"
        policy = adapter if adapter.is_dir() else trained.final
        console.print(f"After {counted(trained.steps, 'step')} the best chooser is in {policy}.")
        command = ["kernel-smith", "optimize", "TASK", "--proposer", "chooser"]
        print_next(shlex.join([*command, "--policy", str(policy)]), "let it choose edits")


@app.command()
def merge(
    adapter: Annotated[Path, typer.Argument(help="An adapter, such as OUTPUT/final/adapter.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the model goes.")],
    json: Json = False,
) -> None:
    """Write a model with an adapter merged into its weights."""
    from kernel_smith.training.models import merge_adapter, need_libraries

    need_libraries()
    merge_adapter(adapter, output)
    if json:
        print_json({"model": str(output)})
    else:
        console.print(f"The model is in {output}.")
        _print_how_to_serve(output)


def _given(options: dict[str, Any], rank: int | None, full: bool) -> dict[str, Any]:
    """Options that were given; the others leave a file's settings as they are."""
    given = {name: value for name, value in options.items() if value is not None}
    if full:
        given["lora"] = False
    elif rank is not None:
        given["lora"] = {"rank": rank}
    return given


def _again() -> str:
    return shlex.join(["kernel-smith", *sys.argv[1:]])


def _show(trained: Trained, *, as_json: bool) -> None:
    from kernel_smith.training.running import is_main_process

    if not is_main_process():
        return
    model, adapter = trained.final, trained.final / "adapter"
    merged = (model / "config.json").is_file()
    if as_json:
        print_json(
            {
                "output": str(trained.folder),
                "model": str(model) if merged else None,
                "adapter": str(adapter) if adapter.is_dir() else None,
                "steps": trained.steps,
                "metrics": trained.metrics,
            }
        )
        return
    where = model if merged else adapter
    console.print(f"After {counted(trained.steps, 'step')} the model is in {where}.")
    if not merged:
        command = shlex.join(["kernel-smith", "train", "merge", str(adapter), "-o", str(model)])
        print_next(command, "make a model of the adapter")
    _print_how_to_serve(model)


def _print_how_to_serve(model: Path) -> None:
    path = shlex.quote(str(model))
    print_next(f"vllm serve {path} --served-model-name mine", "or transformers serve, SGLang, ...")
    print_next(
        "kernel-smith optimize TASK --model mine@http://127.0.0.1:8000/v1", "let it write kernels"
    )
