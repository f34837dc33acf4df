#!/usr/bin/env python3
"""SIGKILL at every call of shardctl split that changes the disk: each part is whole or not there,
and the same command finishes."""

from fault_support import CALLS, FaultCase, main
from shardify_support import SHARDCTL, digests, run

FRACTIONS = ["--fractions", "0.5,0.3,0.2"]


class SplitIsKilled(FaultCase):
    def split(self, folder):
        return [SHARDCTL, "split", str(folder), *FRACTIONS, "--quiet"]

    def parts(self, folder):
        return {name: digest for name, digest in digests(folder).items() if name.endswith(b".selection")}

    def test_a_kill_at_any_call_leaves_whole_parts(self):
        self.prepare("rows")
        done = self.starts["rows"]["complete"]
        before = digests(done)
        self.start("rows", "complete")
        counts = self.count_calls(self.split(self.out))
        self.assert_code(run(self.split(self.out)), 0)
        expected = self.parts(self.out)
        self.assertEqual(len(expected), 3)
        killed = 0
        for call, count in sorted(counts.items()):
            self.assertIn(call, CALLS)
            for k in range(1, count + 1):
                with self.subTest(call=call, k=k):
                    self.start("rows", "complete")
                    result = self.strace(self.split(self.out), call, "signal=SIGKILL", k)
                    killed += result.code in (-9, 137)
                    for name, digest in self.parts(self.out).items():
                        self.assertEqual(digest, expected[name], f"{name} is half written")
                    self.assert_code(run(self.split(self.out)), 0)
                    self.assertEqual(self.parts(self.out), expected)
                    rest = {name: digest for name, digest in digests(self.out).items() if name in before}
                    self.assertEqual(rest, before)
        print(f"killed {killed} times")
        self.assertGreater(killed, 10)


if __name__ == "__main__":
    main()
