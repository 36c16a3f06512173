#!/usr/bin/env python3
"""Completion scripts for bash: sourced, then asked for the completions of command lines."""
import pathlib
import subprocess
import sys
import unittest

FOLDER = pathlib.Path(sys.argv[1])


def completions(program, *words):
    """What bash offers for the last of the words."""
    script = subprocess.run([FOLDER / program, "--completion=bash"], capture_output=True, text=True, check=True).stdout
    ask = (f'COMP_WORDS=({program} "$@") COMP_CWORD=$#\n'
           f'$(complete -p {program} | grep -o "[-]F [^ ]*" | cut -c 4-)\n'
           'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", f"{script}\n{ask}", "bash", *words], capture_output=True, text=True)
    assert done.stderr == "", done.stderr
    return done.stdout.split()


class Completion(unittest.TestCase):
    def test_one_job(self):
        self.assertEqual(completions("nmt-translate", "--beam-s"), ["--beam-size"])
        self.assertEqual(completions("nmt-translate", "--alignment", "s"), ["subword"])

    def test_jobs_of_nmt_vocab(self):
        self.assertEqual(completions("nmt-vocab", "tr"), ["train"])
        self.assertIn("inspect", completions("nmt-vocab", ""))
        self.assertEqual(completions("nmt-vocab", "train", "--max-line-"), ["--max-line-bytes"])
        self.assertEqual(completions("nmt-vocab", "inspect", "--dec"), ["--decode"])
        self.assertEqual(completions("nmt-vocab", "inspect", "--max-line-"), [])

    def test_zsh(self):
        script = subprocess.run([FOLDER / "nmt-vocab", "--completion=zsh"], capture_output=True, text=True, check=True).stdout
        self.assertTrue(script.startswith("#compdef nmt-vocab\n"), script)
        for job, option in (("train", "--max-line-bytes"), ("inspect", "--decode")):
            body = script.split(f"_nmt_vocab_{job}() {{")[1].split("\n}\n")[0]
            self.assertIn(f"'*{option}[", body)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
