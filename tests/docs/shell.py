"""Runs the `sh` fences of a page in one shell, in order, and compares what they print.

A page shows what one run printed. Ids, digests, times, ports and process numbers differ in
every run: they are matched by their form, and an id or digest that a page shows stands for the
real one from then on, so a later command of the page names what really is there.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.pages import Fence, Page, shown_after

PATIENCE_S = 120.0
_ID = "id"
_FORMS: Mapping[str, str] = {
    _ID: r"\bshop\.[a-z0-9-]+-[0-9a-hjkmnp-tv-z]{6}\b",
    "digest": r"\b(?:[0-9a-f]{64}|[0-9a-f]{12})\b",
    "stamp": r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?\+00:00)?",
    "clock": r"\b\d\d:\d\d:\d\d\b",
    "age": r"\b\d+[smhd] ago\b",
    "left": r"\bin \d+[smhd]\b",
    "took": r"\bafter \d+s\b",
    "port": r"\b127\.0\.0\.1:\d+\b",
    "process": r"\bprocess \d+\b",
    "key": r"\b[a-z2-7]{52}\b",
}
_LEARNT = (_ID, "digest")
# Why so hard an end: the SDK's native threads may abort an interpreter that shuts down
# (https://github.com/temporalio/sdk-python/issues/300); the program itself has ended by then.
_RUN = (
    "import os, runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__'); "
    "sys.stdout.flush(); os._exit(0)"
)
_ANY_FORM = re.compile("|".join(f"(?P<{name}>{form})" for name, form in _FORMS.items()))


@dataclass
class Shell:
    """One `bash` in a folder, fed one fence after the other."""

    folder: Path
    environ: Mapping[str, str]
    real: dict[str, str] = field(default_factory=dict)
    """What an id or digest of the page is called in this run."""

    def __post_init__(self) -> None:
        self._scratch = self.folder.parent / f"{self.folder.name}-fences"
        self._scratch.mkdir()
        self._count = 0
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=self.folder,
            env=dict(self.environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def play(self, page: Page) -> None:
        """Do what a reader of the page does: write its files, type its commands, compare."""
        for fence in page.fences:
            if "file" in fence.options:
                target = self._where() / fence.options["file"]
                target.write_text(self._in_this_run(fence.text), encoding="utf-8")
            elif fence.language in ("sh", "python") and "check" not in fence.options:
                self.run(fence)

    def run(self, fence: Fence) -> None:
        """Run one fence; a command that fails must be the one that the fence says fails."""
        text = self._in_this_run(fence.text)
        if fence.language == "python":
            program = self._scratch / "program.py"
            program.write_text(text, encoding="utf-8")
            text = f'python -c "{_RUN}" {program}'
        printed, codes = self.type(text)
        wanted = fence.options.get("exit")
        assert codes == ([wanted] if wanted else []), f"{fence.place}: {codes}\n{printed}"
        shown = shown_after(fence)
        if shown is not None:
            self._compare(fence, shown, printed)

    def close(self) -> None:
        """End the shell."""
        assert self._bash.stdin is not None
        self._bash.stdin.close()
        self._bash.wait(PATIENCE_S)
        assert self._bash.stdout is not None
        self._bash.stdout.close()

    def type(self, text: str) -> tuple[str, list[str]]:
        """Run some lines; what they print, and the exit codes of those that fail."""
        self._count += 1
        script = self._scratch / f"{self._count}.sh"
        out, codes = script.with_suffix(".out"), script.with_suffix(".codes")
        codes.touch()
        script.write_text(f"trap 'echo $? >> {codes}' ERR\n{text}\ntrap - ERR\n", encoding="utf-8")
        self._say(f". {script} > {out} 2>&1 < /dev/null; echo")
        return out.read_text(encoding="utf-8"), codes.read_text().split()

    def _where(self) -> Path:
        return Path(self._say("pwd"))

    def _say(self, line: str) -> str:
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        self._bash.stdin.write(f"{line}\n")
        self._bash.stdin.flush()
        return self._bash.stdout.readline().strip()

    def _in_this_run(self, text: str) -> str:
        for shown, real in sorted(self.real.items(), key=lambda pair: -len(pair[0])):
            text = text.replace(shown, real)
        return text

    def _compare(self, fence: Fence, shown: str, printed: str) -> None:
        wanted = shown.rstrip("\n").split("\n")
        lines = printed.rstrip("\n").split("\n")
        at = 0
        skips = False
        for line in wanted:
            if line.strip() == "...":
                skips = True
                continue
            while at < len(lines) and not self._same(line, lines[at]) and skips:
                at += 1
            found = lines[at] if at < len(lines) else "(the end)"
            assert at < len(lines), f"{fence.place}: {line!r} was not printed:\n{printed}"
            assert self._same(line, found), f"{fence.place}: {line!r} is {found!r}:\n{printed}"
            self._learn(line, found)
            at, skips = at + 1, False
        rest = lines[at:]
        assert skips or not rest, f"{fence.place}: the page does not show {rest}:\n{printed}"

    def _same(self, shown: str, printed: str) -> bool:
        return bool(re.fullmatch(_pattern(shown), _words(printed)))

    def _learn(self, shown: str, printed: str) -> None:
        match = re.fullmatch(_pattern(shown), _words(printed))
        assert match is not None
        forms = list(_ANY_FORM.finditer(shown))
        for form, real in zip(forms, match.groups(), strict=True):
            if form.lastgroup in _LEARNT:
                known = self.real.setdefault(form.group(), real)
                assert known == real, f"{form.group()} was {known} and is now {real}"


def _pattern(shown: str) -> str:
    """A regular expression for every line that differs from `shown` only in what may differ."""
    parts: list[str] = []
    end = 0
    shown = _words(shown)
    for form in _ANY_FORM.finditer(shown):
        assert form.lastgroup is not None
        parts += [re.escape(shown[end : form.start()]), f"({_FORMS[form.lastgroup]})"]
        end = form.end()
    return "".join([*parts, re.escape(shown[end:])])


def _words(line: str) -> str:
    """A line with one blank between its words: how columns line up is not compared."""
    return " ".join(line.split())


def bare_venv(folder: Path) -> Path:
    """A virtual environment that sees what the tests see, and can be installed into.

    It stands for the one that the README's first line makes; returns its `bin`.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    inner = _purelib(python)
    outer = _purelib(Path(sys.executable))
    (inner / "outer.pth").write_text(f"import site; site.addsitedir({str(outer)!r})\n")
    for name, module in (("capuchin", "capuchin_yaml.cli.app"), ("pip", "pip._internal.cli.main")):
        script = folder / "bin" / name
        script.write_text(f"#!{python}\nimport sys\nfrom {module} import main\nsys.exit(main())\n")
        script.chmod(0o755)
    return folder / "bin"


def _purelib(python: Path) -> Path:
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def on_path(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """An environment in which `folder` is looked through first."""
    return {**environ, "PATH": f"{folder}{os.pathsep}{environ.get('PATH', os.defpath)}"}
