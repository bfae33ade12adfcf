"""`setwise convert DATA -o blocks`: a file of any size as a folder of blocks."""

from __future__ import annotations

from pathlib import Path

from setwise.cli.options import command, say
from setwise.cli.reading import Reading


@command(
    output="A new folder, or one whose conversion was interrupted.",
    rows="Rows per block; training keeps a few blocks in memory at a time.",
    part="For a file with a train/test split: which part to convert, such as train.",
)
def convert(
    data: Path,
    *,
    output: Path,
    rows: int = 65536,
    part: str | None = None,
    json: bool = False,
    reading: Reading,
) -> None:
    r"""Convert a file that is too large for memory into blocks.

    The result is a folder of blocks, which `setwise fit` and `setwise predict` accept in place of a
    file. The input is read in parts; if the conversion is interrupted, repeat the command to
    resume.

    \b
    Examples:
      setwise convert big.csv --label-column tags --separator ";" -o blocks
      setwise fit blocks --target f1 -o model.skops
      setwise predict model.skops blocks -o predictions.csv

    Exit status: 0 success; 2 the file or an option is wrong; 130 interrupted, repeat the command to
    resume.
    """
    from setwise.datasets import convert

    if reading.unseen_labels is not None:
        raise ValueError("--unseen-labels is for labels that only a second file has (--test)")
    blocks = convert(
        data, output, rows=rows, format=reading.format, part=part, placed=reading.placed,
        **reading.options,
    )  # fmt: skip
    told = {
        "rows": blocks.n_rows, "features": blocks.n_features, "labels": blocks.n_labels,
        "blocks": len(blocks), "missing_features": blocks.n_missing, "output": str(output),
    }  # fmt: skip
    words = f"{blocks}\nwrote {output}"
    say(json, told, words)
