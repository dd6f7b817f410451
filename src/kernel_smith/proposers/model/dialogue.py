"""One exchange of words about one program: ask, and if the answer is of no use, ask once more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kernel_smith.programs.fold import Folded
from kernel_smith.proposers.model.blocks import without_thoughts
from kernel_smith.proposers.model.client import Answer, Bill, Client
from kernel_smith.proposers.model.failures import ModelError, NoProgram, Truncated
from kernel_smith.proposers.model.parse import Program, Refusal, parse_answer
from kernel_smith.proposers.model.prompt import Prompts
from kernel_smith.records import Conversation, Message, Note


@dataclass(frozen=True)
class Outcome:
    program: Program
    conversation: Conversation
    estimated: bool  # the server did not count all of the tokens
    asked_again: bool


async def converse(
    client: Client,
    prompts: Prompts,
    messages: tuple[Message, ...],
    base: Folded,
    recall: Callable[[str], str],
    *,
    asks_again: bool = True,
) -> Outcome:
    """Return a program that changes `base`, as the messages show it, and is new: `recall` says what
    is known of a source. A `ModelError` carries the conversation as far as it went."""
    first = messages
    bill = Bill()
    response = ""
    try:
        while True:
            answer = await client.ask(messages, bill)
            response = answer.full
            if answer.truncated:
                raise _truncated(client)
            parsed = _if_new(parse_answer(answer.text, base.text, base.unfold), recall)
            if isinstance(parsed, Program):
                said = _conversation(client, messages, response, bill)
                return Outcome(parsed, said, bill.estimated, messages is not first)
            if messages is not first or not asks_again:
                raise _no_program(client, answer, parsed)
            messages = prompts.retry(messages, without_thoughts(answer.text), parsed.reason)
    except ModelError as error:
        error.conversation = _conversation(client, messages, response, bill)
        raise


def _if_new(parsed: Program | Refusal, recall: Callable[[str], str]) -> Program | Refusal:
    """Refuse a program that the run knows: judging it once more would show nothing."""
    known = recall(parsed.source) if isinstance(parsed, Program) else ""
    if not known:
        return parsed
    same = "The program is one that was judged before, up to its names and comments"
    return Refusal(f"{same} ({known}). Change something else.")


async def think(client: Client, messages: tuple[Message, ...]) -> Note:
    """Return an answer in words. A `ModelError` carries the conversation as far as it went."""
    bill = Bill()
    response = ""
    try:
        answer = await client.ask(messages, bill)
        response = answer.full
        said = without_thoughts(answer.text).strip()
        if not said:
            raise NoProgram(
                f"{client.model.name} said nothing", hint="raise the model's max_tokens"
            )
    except ModelError as error:
        error.conversation = _conversation(client, messages, response, bill)
        raise
    return Note(text=said, conversation=_conversation(client, messages, response, bill))


def _conversation(
    client: Client, messages: tuple[Message, ...], response: str, bill: Bill
) -> Conversation:
    return Conversation(
        model=client.model.name, messages=messages, response=response, usage=bill.usage
    )


def _no_program(client: Client, answer: Answer, parsed: Refusal) -> NoProgram:
    if answer.text.strip():
        why, hint = parsed.reason, "try another model, or the other mode (full, edits)"
    else:
        why = f"its answer holds no text (finish_reason: {answer.finish})"
        hint = "see that the server has it answer in text, without tools; or try another model"
    return NoProgram(f"{client.model.name} gave no usable program: {why}", hint=hint)


def _truncated(client: Client) -> Truncated:
    return Truncated(
        f"{client.model.name}: the answer was cut off at {client.model.max_tokens} tokens",
        hint='raise the model\'s max_tokens, or ask for edits (mode = "edits")',
    )
