#!/usr/bin/env python3
"""Completion in bash, zsh and fish: real command lines, completed by the real shells where they are
installed, with the scripts that the programs print. Each script knows every subcommand and option of
--help-all."""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time

from manual_pages import BIN, help_of, options_in_help, subcommands_in_help
from shardify_support import SHARDIFY, TestCase, main, run

PROGRAMS = ("shardify", "shardctl", "shardbench")
SHELLS = ("bash", "zsh", "fish")

# A command line; what it is completed to, and what it is not.
LINES = (
    ("shardify --pre", {"--preset"}, {"--pair"}),
    ("shardify --preset ", {"train", "eval"}, {"--preset"}),
    ("shardify photos out --codec ", {"none", "packed", "zstd", "jpeg"}, set()),
    ("shardify photos out --on-error f", {"fail"}, {"skip"}),
    ("shardify photos out --mask ", {"photos/", "out/"}, {"list.txt"}),
    ("shardify photos out --labels li", {"list.txt"}, {"photos/"}),
    ("shardify ph", {"photos/"}, {"out/"}),
    ("shardctl ver", {"verify"}, {"show"}),
    ("shardctl sh", {"show"}, {"verify"}),
    ("shardctl verify --js", {"--json"}, set()),
    ("shardctl verify ou", {"out/"}, {"photos/"}),
    ("shardctl export out --format ", {"npy", "tar", "parquet"}, set()),
    ("shardbench load --transp", {"--transport"}, set()),
    ("shardbench load out --transport ", {"auto", "mapped", "staged", "direct", "resident"}, set()),
    ("shardbench load out --order s", {"shuffle", "sequential"}, {"windowed"}),
    ("shardbench convert --preset=", {"train", "eval"}, set()),
)


def script_of(program, shell):
    return run([BIN / program, "--completion", shell]).out


class Terminal:
    """A shell on a terminal, which is given keys and asked what it shows."""

    def __init__(self, command, folder):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            environment = {**os.environ, "TERM": "dumb", "PS1": "$ ", "PATH": f"{BIN}:{os.environ['PATH']}"}
            os.execvpe(command[0], command, {**environment, "COLUMNS": "200", "LINES": "50"})

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)

    def send(self, text):
        os.write(self.fd, text.encode())

    def read(self, until, seconds=20):
        """What it shows until a pattern is there; all of it after that time."""
        shown = b""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([self.fd], [], [], 0.1)[0]:
                shown += os.read(self.fd, 65536)
                if re.search(until, shown.decode(errors="replace")):
                    break
        return shown.decode(errors="replace")


class Completion(TestCase):
    def setUp(self):
        super().setUp()
        for folder in ("photos", "out"):
            (self.path / folder).mkdir()
        (self.path / "list.txt").write_text("")

    def need(self, shell):
        if shutil.which(shell) is None:
            self.skipTest(f"{shell} is not installed")

    def check(self, found_of):
        for line, wanted, others in LINES:
            with self.subTest(line=line):
                found = found_of(line)
                self.assertLessEqual(wanted, found, line)
                self.assertFalse(others & found, f"{line}: {found}")

    def test_bash(self):
        """Asked for by the function that `complete` names, as readline does it."""
        self.need("bash")
        ask = """
            line=$1; program=${line%% *}
            source <("$program" --completion bash)
            # readline divides words at '=' too.
            read -ra COMP_WORDS <<<"${line//=/ = }"
            [[ $line == *[\\ =] ]] && COMP_WORDS+=('')
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            "_$program" 2>/dev/null
            for one in "${COMPREPLY[@]}"; do [[ -d $one ]] && one+=/; echo "$one"; done
        """
        environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}

        def found_of(line):
            result = subprocess.run(
                ["bash", "-c", ask, "bash", line],
                cwd=self.path,
                env=environment,
                capture_output=True,
                text=True,
            )
            self.assertEqual((result.returncode, result.stderr), (0, ""), line)
            return set(result.stdout.split())

        self.check(found_of)

    def test_bash_on_a_terminal(self):
        self.need("bash")
        terminal = Terminal(["bash", "--norc", "--noprofile", "-i"], self.path)
        try:
            terminal.send(
                "bind 'set enable-bracketed-paste off'; for p in shardify shardctl; do "
                "source <($p --completion bash); done; echo rea''dy\n"
            )
            terminal.read("ready\r")
            for line, completed in (
                ("shardify --pres\t", "--preset"),
                ("shardify --preset=t\t", "--preset=train"),
                ("shardify pho\t", "photos/"),
                ("shardctl veri\t", "shardctl verify "),
                ("shardctl verify --js\t", "--json"),
            ):
                terminal.send(line)
                self.assertIn(completed, terminal.read(re.escape(completed)), line)
                terminal.send("\x15")  # ^U: a new line
        finally:
            terminal.close()

    def test_fish(self):
        self.need("fish")
        for program in PROGRAMS:
            (self.path / f"{program}.fish").write_text(script_of(program, "fish"))
        environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(self.path)}

        def found_of(line):
            source = "; ".join(f"source {program}.fish" for program in PROGRAMS)
            result = subprocess.run(
                ["fish", "--no-config", "-c", f"{source}; complete -C '{line}'"],
                cwd=self.path,
                env=environment,
                capture_output=True,
                text=True,
            )
            self.assertEqual((result.returncode, result.stderr), (0, ""), line)
            found = {one.split("\t")[0] for one in result.stdout.splitlines()}
            return {one.removeprefix("--preset=") for one in found}

        self.check(found_of)

    def test_zsh(self):
        """On a terminal: zsh completes nowhere else. Its list is read between two marks."""
        self.need("zsh")
        terminal = Terminal(["zsh", "-f", "-i"], self.path)
        try:
            terminal.send(
                "autoload -U compinit; compinit -D -u; unsetopt beep list_beep; LISTMAX=10000; "
                + "; ".join(f"source <({program} --completion zsh)" for program in PROGRAMS)
                # The matches themselves, whatever the list looks like.
                + '; compadd() { local -a found; builtin compadd -O found "$@"; '
                'print -rl -- match:${^found} >>matches 2>/dev/null; builtin compadd "$@"; }'
                + "; echo rea''dy\n"
            )
            terminal.read("ready\r")
            found_in = self.path / "matches"

            def found_of(line):
                found_in.write_text("")
                terminal.send(line + "\t")
                end = time.monotonic() + 20
                while not found_in.read_text() and time.monotonic() < end:
                    time.sleep(0.05)
                terminal.send("\x15echo do''ne\n")  # ^U, then a line that comes when all is written
                terminal.read("done\r")
                found = set(re.findall(r"(?m)^match:(.+)$", found_in.read_text()))
                return found | {f"{one}/" for one in found if (self.path / one).is_dir()}

            self.check(found_of)
        finally:
            terminal.close()

    def test_zsh_finds_files_in_its_path_of_functions(self):
        self.need("zsh")
        terminal = Terminal(["zsh", "-f", "-i"], self.path)
        try:
            terminal.send(
                f"fpath=('{BIN.parent / 'completions' / 'zsh'}' $fpath); "
                "autoload -U compinit; compinit -D -u; echo rea''dy\n"
            )
            terminal.read("ready\r")
            terminal.send("shardctl veri\t")
            self.assertIn("shardctl verify ", terminal.read("shardctl verify "))
        finally:
            terminal.close()

    def test_every_script_has_every_option_and_subcommand(self):
        for program in PROGRAMS:
            subcommands = subcommands_in_help(help_of(program, option="--help"))
            for shell in SHELLS:
                script = script_of(program, shell)
                for subcommand in subcommands:
                    self.assertRegex(script, rf"\b{subcommand}\b", f"{program} {shell}")
                pages = [help_of(program, *words) for words in ([one] for one in subcommands)] or [
                    help_of(program)
                ]
                for page in pages:
                    for name in options_in_help(page):
                        if name.startswith("--"):
                            bare = name.removeprefix("--")
                            self.assertRegex(script, rf"(--|-l ){bare}(?![\w-])", f"{program} {shell} {name}")

    def test_scripts_are_accepted_by_their_shells(self):
        for shell in SHELLS:
            if shutil.which(shell) is None:
                continue
            for program in PROGRAMS:
                path = self.path / "script"
                path.write_text(script_of(program, shell))
                self.assert_code(run([shell, "-n", path]), 0)

    def test_another_shell_is_an_error_that_names_the_three(self):
        result = run([SHARDIFY, "--completion", "tcsh"])
        self.assertEqual(result.code, 2)
        self.assertIn('--completion "tcsh": expected bash, zsh or fish', result.err)

    def test_files_of_the_build_are_what_the_programs_print(self):
        folder = BIN.parent / "completions"
        for program in PROGRAMS:
            for shell, name in (("bash", program), ("zsh", f"_{program}"), ("fish", f"{program}.fish")):
                self.assertEqual((folder / shell / name).read_text(), script_of(program, shell))


if __name__ == "__main__":
    main()
