"""Experiment trackers, through their own clients: MLflow and Weights & Biases.

Where they log to is theirs to say: `MLFLOW_TRACKING_URI`, `WANDB_MODE`, `WANDB_API_KEY` and so on.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.exports.story import PROJECT, Story

_KERNEL = "best_kernel.py"


def send(story: Story, tracker: str) -> str:
    """Log a run to a tracker; return where it is to be found there."""
    if tracker == "mlflow":
        return _to_mlflow(story)
    if tracker == "wandb":
        return _to_wandb(story)
    raise BadInput(f"no tracker is called {tracker!r}", hint="choose mlflow or wandb")


def _to_mlflow(story: Story) -> str:
    mlflow = _client("mlflow")
    try:
        mlflow.set_experiment(PROJECT)
        with mlflow.start_run(run_name=story.run) as run:
            mlflow.log_params(story.settings)
            for number, figures in story.steps:
                mlflow.log_metrics(figures, step=number)
            mlflow.log_metrics({f"final.{name}": value for name, value in story.outcome.items()})
            if story.kernel is not None:
                mlflow.log_text(story.kernel, _KERNEL)
    except mlflow.exceptions.MlflowException as error:
        raise BadInput(
            f"MLflow did not take the run: {str(error).partition('. ')[0]}",
            hint="set MLFLOW_TRACKING_URI, e.g. to sqlite:///mlflow.db or a server's address",
        ) from None
    return f"run {run.info.run_id} of experiment {PROJECT} at {mlflow.get_tracking_uri()}"


def _to_wandb(story: Story) -> str:
    wandb = _client("wandb")
    try:
        run = wandb.init(
            project=PROJECT, name=story.run, config=story.settings, reinit="create_new"
        )
        for number, figures in story.steps:
            run.log(figures, step=number)
        run.summary.update({f"final.{name}": value for name, value in story.outcome.items()})
        if story.kernel is not None:
            artifact = wandb.Artifact("best-kernel", type="kernel")
            with artifact.new_file(_KERNEL) as file:
                file.write(story.kernel)
            run.log_artifact(artifact)
        run.finish()
    except wandb.Error as error:
        raise BadInput(
            f"Weights & Biases did not take the run: {error}",
            hint="wandb login, or WANDB_MODE=offline to write it to a folder",
        ) from None
    return f"run {run.id} of project {PROJECT} ({run.dir})"


def _client(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingPrerequisite(
            f"the package {name} is not installed", hint=f"pip install 'kernel-smith[{name}]'"
        ) from None
