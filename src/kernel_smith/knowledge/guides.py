"""The guides: Markdown files with a title and sections.

A line `Hardware: WORD` under the title makes a guide one for machines whose description holds that
word. A line `For: FAMILY, ...` under a section's title keeps it for tasks of these families.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

from pydantic import Field

from kernel_smith.errors import BadInput
from kernel_smith.records import Record

_HARDWARE, _FOR = "Hardware: ", "For: "


class Section(Record):
    """One part of a guide, short enough for a prompt."""

    topic: str
    title: str
    text: str
    families: tuple[str, ...] = Field(default=(), description="of tasks; none: all")

    @property
    def markdown(self) -> str:
        return f"## {self.title}\n\n{self.text}"


class Guide(Record):
    """What is known about a backend, a device, or how to read an evaluation."""

    topic: str
    title: str
    hardware: str | None = Field(default=None, description="a word of the machine's description")
    sections: tuple[Section, ...]

    @property
    def backend(self) -> str:
        return self.topic.partition("_")[0]

    @property
    def markdown(self) -> str:
        return "\n\n".join([f"# {self.title}", *(part.markdown for part in self.sections)])


@cache
def all_guides() -> tuple[Guide, ...]:
    folder = resources.files("kernel_smith.knowledge") / "guides"
    files = sorted(
        (item for item in folder.iterdir() if item.name.endswith(".md")), key=lambda i: i.name
    )
    return tuple(_read(each.name.removesuffix(".md"), each.read_text("utf-8")) for each in files)


def find_topic(topic: str) -> Guide:
    """Return the guide of this name. Raises `BadInput` with the names that there are."""
    known = {guide.topic: guide for guide in all_guides()}
    if topic not in known:
        raise BadInput(
            f"no guide is called {topic!r}", hint=f"choose one of: {', '.join(sorted(known))}"
        )
    return known[topic]


def _read(topic: str, text: str) -> Guide:
    head, *parts = text.split("\n## ")
    title, _, rest = head.removeprefix("# ").partition("\n")
    lines = [line for line in rest.splitlines() if line.startswith(_HARDWARE)]
    return Guide(
        topic=topic,
        title=title,
        hardware=lines[0].removeprefix(_HARDWARE) if lines else None,
        sections=tuple(_section(topic, part) for part in parts),
    )


def _section(topic: str, part: str) -> Section:
    title, _, text = part.partition("\n")
    families: tuple[str, ...] = ()
    if text.startswith(_FOR):
        names, _, text = text.removeprefix(_FOR).partition("\n")
        families = tuple(name.strip() for name in names.split(","))
    return Section(topic=topic, title=title, text=text.strip(), families=families)
