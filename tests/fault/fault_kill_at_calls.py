#!/usr/bin/env python3
"""SIGKILL at every call that changes the disk: the folder stays sound,
and the same command finishes with the same bytes."""

from fault_support import FaultCase, main


class KillAtCalls(FaultCase):
    def test_a_kill_at_any_call_leaves_a_sound_folder_that_the_same_command_finishes(self):
        killed = {}
        states = {}
        for variant, start, more, call, k in self.cases():
            with self.subTest(variant=variant, start=start, call=call, k=k):
                self.start(variant, start)
                result = self.strace(self.command(variant, *more), call, "signal=SIGKILL", k)
                if result.code in (
                    0,
                    1,
                ):  # the order of the threads was another one than when calls were counted
                    self.assertEqual(self.assert_sound(variant), "complete")
                    continue
                self.assertIn(result.code, (-9, 137), result)
                killed[call] = killed.get(call, 0) + 1
                found = self.assert_sound(variant)
                states[found] = states.get(found, 0) + 1
                self.assert_finishes(variant, more if found == "complete" and start == "complete" else [])
        print(f"killed at {killed}, {sum(killed.values())} in all; left {states}")
        for call in ("pwrite64", "fsync", "rename", "unlink", "ftruncate", "fallocate"):
            self.assertGreater(killed.get(call, 0), 2, f"no kill at {call}: {killed}")


if __name__ == "__main__":
    main()
