"""``olvido doctor``: what is wrong, and what to do about it."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from assistant.cli.options import load, options_of
from assistant.cli.output import one_line, print_json

if TYPE_CHECKING:
    from assistant.doctor import Finding
    from assistant.settings import LoadedSettings

MARKS = {"ok": "ok      ", "warning": "warning ", "problem": "PROBLEM "}


def doctor(
    ctx: typer.Context,
    fix: Annotated[bool, typer.Option("--fix", help="Mend what can be mended without a decision of yours.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for other programs.")] = False,
) -> None:
    """Check configuration, data, disk, clock, embedder, model, tokens and daemon.

    The model is asked for one word. Exit code 1 when there is a problem.
    """
    from assistant import logs

    loaded = load(ctx)
    logs.configure(loaded.settings, verbose=options_of(ctx).verbose)
    findings = asyncio.run(_examine(loaded, fix, show=not as_json))
    if as_json:
        print_json([{"name": each.name, "state": each.state, "text": each.text} for each in findings])
    if any(each.state == "problem" for each in findings):
        raise typer.Exit(1)


async def _examine(loaded: "LoadedSettings", fix: bool, *, show: bool) -> "list[Finding]":
    from assistant.doctor import Finding, examine

    findings: list[Finding] = []
    async for found in examine(loaded):
        finding = found
        if fix and found.fix is not None:
            finding = _mended(found)
        findings.append(finding)
        if show:
            typer.echo(f"{MARKS[finding.state]}{finding.name}: {one_line(finding.text)}")
            sys.stdout.flush()
    return findings


def _mended(found: "Finding") -> "Finding":
    from dataclasses import replace

    assert found.fix is not None
    try:
        found.fix()
    except OSError as exc:
        return replace(found, state="problem", text=f"{found.text} It could not be mended: {exc.strerror}.")
    return replace(found, state="ok", text=f"Mended: {found.text}")
