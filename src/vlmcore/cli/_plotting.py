"""The work of ``vlmcore actions plot``: read, check, draw, write."""

from __future__ import annotations

import attrs

from vlmcore._whole_files import require_writable
from vlmcore.cli._checking import note_template
from vlmcore.cli._exit_codes import ExitCode
from vlmcore.cli._files import write_bytes
from vlmcore.cli._recordings import RecordingFile
from vlmcore.cli._robots import Start
from vlmcore.cli._terminal import Terminal
from vlmcore.errors import ContractError
from vlmcore.media.encoding import encode_png
from vlmcore.safety.gate import SafetyGate

__all__ = ["Plotting"]

_OPTIONS = {
    "width_px": "--width",
    "height_px": "--height",
    "max_side_px": "--width and --height",
}


@attrs.frozen(kw_only=True, eq=False)
class Plotting:
    """
    One run of the command.

    Attributes:
        terminal: Where notes go.
        gate: The gate, made for an embodiment; ``None`` to draw the actions alone.
        start: What is known of the robot before the first step.
        output: Where to write the picture.
        width_px: Width of the picture.
        height_px: Height of the picture; ``None`` for as much as is needed.
    """

    terminal: Terminal
    gate: SafetyGate | None
    start: Start
    output: str
    width_px: int
    height_px: int | None

    def run(self, file: RecordingFile) -> ExitCode:
        """
        Draw one recording.

        Raises:
            ContractError: If it cannot be read, a size is out of range, or the picture cannot be
                written.
            MissingDependencyError: If Pillow is not installed.
        """
        require_writable(self.output)
        chunk, gate = file.read().chunk, self.gate
        start, report = self.start, None
        if gate is not None:
            report = gate.check(chunk, last_command=start.last_command, position=start.position)
        try:
            picture = chunk.preview(
                space=None if gate is None else gate.actions,
                report=report,
                last_command=start.last_command,
                width_px=self.width_px,
                height_px=self.height_px,
            )
        except ContractError as error:
            if error.field not in _OPTIONS:
                raise
            raise ContractError(_OPTIONS[error.field], error.problem) from None
        write_bytes(self.output, encode_png(picture))
        if report is not None and (marked := int(report.marks().sum())):
            together = ", alone or together" if gate and gate.actions.rotations else ""
            self.terminal.note(f"{marked} values break a limit{together}, and are marked")
        if not self.output.lower().endswith(".png"):
            self.terminal.note(f"{self.output}: is a PNG, whatever its name says")
        note_template(self.terminal, None if gate is None else gate.embodiment)
        return ExitCode.DONE
