"""The work of ``vlmcore actions check``: read, vet, tell, and write what may be executed."""

from __future__ import annotations

from typing import cast

import attrs

from vlmcore._whole_files import require_writable
from vlmcore.cli._exit_codes import ExitCode
from vlmcore.cli._files import write_bytes
from vlmcore.cli._recordings import Recording, RecordingFile
from vlmcore.cli._robots import Start
from vlmcore.cli._terminal import Terminal
from vlmcore.cli._verdicts import verdict_lines
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.documents import action_chunk_to_document
from vlmcore.contracts.embodiment import Embodiment, LimitsSource
from vlmcore.contracts.json_text import write_json
from vlmcore.errors import UnsafeActionError
from vlmcore.safety.documents import safety_report_to_document
from vlmcore.safety.gate import SafetyGate
from vlmcore.safety.report import SafetyReport
from vlmcore.safety.vetted import VettedChunk

__all__ = ["Checking", "note_template"]


@attrs.frozen(kw_only=True, eq=False)
class Checking:
    """
    One run of the command.

    Attributes:
        terminal: Where the verdict, notes and complaints go.
        gate: The gate, made for an embodiment.
        start: What is known of the robot before the first step.
        output: Where to write what may be executed.
    """

    terminal: Terminal
    gate: SafetyGate
    start: Start
    output: str | None

    def run(self, file: RecordingFile, *, as_json: bool) -> ExitCode:
        """
        Check one recording.

        Raises:
            ContractError: If it cannot be read, or *output* cannot be written.
        """
        if self.output is not None:
            require_writable(self.output)
        recording = file.read()
        report, vetted = self._vet(recording.chunk)
        try:
            self._write(recording, vetted)  # first: who reads the verdict may leave after a line
        finally:
            self._tell(report, vetted, as_json=as_json)
        self._note(report, vetted)
        return ExitCode.UNSAFE if vetted is None else ExitCode.DONE

    def _tell(self, report: SafetyReport, vetted: VettedChunk | None, *, as_json: bool) -> None:
        if as_json:
            self.terminal.document(safety_report_to_document(report), indent=2)
            return
        for line in verdict_lines(report, self.gate.actions, vetted):
            self.terminal.line(line)

    def _vet(self, chunk: ActionChunk) -> tuple[SafetyReport, VettedChunk | None]:
        try:
            vetted = self.gate.vet(
                chunk, last_command=self.start.last_command, position=self.start.position
            )
        except UnsafeActionError as error:
            return cast("SafetyReport", error.report), None
        return vetted.report, vetted

    def _note(self, report: SafetyReport, vetted: VettedChunk | None) -> None:
        note_template(self.terminal, self.gate.embodiment)
        wanted = self.gate.execution_horizon
        if wanted is not None and wanted > report.input_horizon:
            self.terminal.note(f"there are {report.input_horizon} steps only, and not {wanted}")
        if self.output is None:
            return
        if vetted is None:
            self.terminal.complain(f"vlmcore: {self.output}: is not written, nothing is safe")
        else:
            self.terminal.note(f"{self.output}: {vetted.horizon} steps that may be executed")

    def _write(self, recording: Recording, vetted: VettedChunk | None) -> None:
        if self.output is None or vetted is None:
            return
        document = action_chunk_to_document(vetted.as_chunk())
        if not recording.is_timed:
            del document["observed_at_s"]
        write_bytes(self.output, f"{write_json(document)}\n".encode())


def note_template(terminal: Terminal, robot: Embodiment | None) -> None:
    """Say so if the limits are a template's."""
    if robot is not None and robot.limits_source is LimitsSource.TEMPLATE:
        terminal.note(f"the limits of {robot.name} are a template's, certified by nobody")
