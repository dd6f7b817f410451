"""What `pip install kernel-smith` brings."""

from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]


def test_a_wheel_holds_all_of_the_package() -> None:
    """Headers, templates, guides and the viewer's pages, too: tests run on a checkout, which has
    them anyway."""
    builder = WheelBuilder(str(ROOT))
    packed = {Path(file.distribution_path) for file in builder.recurse_included_files()}
    source = ROOT / "src"
    files = (path.relative_to(source) for path in source.rglob("*") if path.is_file())
    assert packed == {path for path in files if "__pycache__" not in path.parts}
