#!/usr/bin/env python3
"""shardify under a real Slurm: one node on loopback, its daemons started here and ended afterwards.

Needs slurmctld, slurmd, the client programs and munged (Debian: slurmctld slurmd slurm-client munge). Nothing
of an installed Slurm's configuration, keys, ports or state is used.
"""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from loopback import free_port
from shardify_support import (
    SHARDIFY,
    SMALL,
    TestCase,
    digests,
    environment,
    main,
    make_images,
    need,
    run,
    shardify,
    state,
)

CONFIGURATION = """
ClusterName=shardtest
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
LaunchParameters=use_interactive_step
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
"""


def daemon(name):
    """Daemons are in sbin, which is not on every user's path."""
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    if path is None:
        raise unittest.SkipTest(f"{name} is not installed")
    return path


class Cluster:
    """munged, slurmctld and slurmd in one folder, until close()."""

    def __init__(self):
        programs = [daemon(name) for name in ("munged", "slurmctld", "slurmd")]
        for name in ("srun", "sbatch", "salloc", "sinfo"):
            need(name)
        self.folder = Path(tempfile.mkdtemp(prefix="shard-slurm."))
        self.folder.chmod(0o755)  # munge insists
        self.processes = []
        try:
            self.start(*programs)
        except BaseException:
            self.close()
            raise

    def start(self, munged, slurmctld, slurmd):
        for name in ("state", "spool", "munge"):
            (self.folder / name).mkdir(mode=0o700)
        key = self.folder / "munge" / "key"
        key.write_bytes(secrets.token_bytes(64))
        key.chmod(0o600)
        conf = self.folder / "slurm.conf"
        conf.write_text(
            CONFIGURATION.format(
                host=socket.gethostname().split(".")[0],
                user=pwd.getpwuid(os.getuid()).pw_name,
                folder=self.folder,
                ports=[free_port(), free_port()],
            )
        )
        self.env = environment(SLURM_CONF=str(conf), SHELL="/bin/bash")
        place = self.folder / "munge"
        self.spawn(
            munged,
            "--foreground",
            f"--key-file={key}",
            f"--socket={self.folder}/munge.socket",
            f"--pid-file={place}/pid",
            f"--log-file={place}/log",
            f"--seed-file={place}/seed",
        )
        self.wait(lambda: (self.folder / "munge.socket").exists(), "munged")
        self.spawn(slurmctld, "-D", "-c", "-f", str(conf))
        self.spawn(slurmd, "-D", "-f", str(conf))
        self.wait(lambda: run(["sinfo", "-h", "-o", "%T"], env=self.env).out.strip() == "idle", "the node")

    def spawn(self, *command):
        with open(self.folder / f"{Path(command[0]).name}.out", "wb") as log:
            self.processes.append(
                subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            )

    def wait(self, ready, what):
        deadline = time.monotonic() + 60
        while not ready():
            ended = [p.args[0] for p in self.processes if p.poll() is not None]
            if ended or time.monotonic() > deadline:
                logs = "".join(
                    f.read_text(errors="replace")[-600:] for f in sorted(self.folder.glob("*.out"))
                )
                raise unittest.SkipTest(f"Slurm does not start here ({what}; ended: {ended}): {logs}")
            time.sleep(0.1)

    def close(self):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in reversed(self.processes):
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Slurm(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()

    def setUp(self):
        super().setUp()
        self.images = make_images(self.path / "in", ("a", "b"), each=8)
        self.assert_code(shardify(self.images, self.path / "alone", *SMALL), 0)
        self.command = " ".join([SHARDIFY, str(self.images), str(self.out), *SMALL])
        self.log = self.path / "log"

    def slurm(self, *command, **options):
        return run(command, env=self.cluster.env, cwd=self.path, **options)

    def batch(self, *options, script):
        """Runs a script and waits for it; what its processes print goes to self.log."""
        return self.slurm("sbatch", "-W", "-o", f"{self.log}.%j", *options, "--wrap", script)

    def printed(self):
        return "".join(path.read_text() for path in sorted(self.path.glob("log.*")))

    def coded(self):
        """The command, and its exit code in a file of its own."""
        return f"{self.command}; echo $? > {self.path}/code.$SLURM_JOB_ID.$SLURM_PROCID"

    def codes(self):
        return sorted(int(path.read_text()) for path in self.path.glob("code.*"))

    def assert_same(self):
        self.assertEqual(state(self.out), "complete", self.printed())
        self.assertEqual(digests(self.out), digests(self.path / "alone"))

    def assert_shared(self, world, printed):
        """Each rank once, with its origin; who ends while others work says 3, and somebody completes it."""
        for rank in range(world):
            self.assertEqual(printed.count(f"rank {rank} of {world} ("), 1, printed)
        self.assertEqual(len(self.codes()), world)
        self.assertIn(0, self.codes())
        self.assertLessEqual(set(self.codes()), {0, 3})
        self.assert_same()

    def test_a_batch_script_is_one_process_whatever_it_allocates(self):
        self.assert_code(self.batch("-n", "8", script=self.command), 0)
        self.assertNotIn("rank", self.printed())
        self.assert_same()

    def test_a_shell_of_salloc_is_one_process(self):
        result = self.assert_code(self.slurm("salloc", "-n", "8", "bash", "-c", self.command), 0)
        self.assertNotIn("rank", result.err)
        self.assert_same()

    def test_a_shell_on_the_node_is_one_process(self):
        """salloc without a command: a step that is none of srun's, with SLURM_PROCID=0 and SLURM_NTASKS=8."""
        need("script")
        result = self.slurm(
            "script",
            "-qec",
            "salloc -n 8",
            "/dev/null",
            input=f"{self.command}; echo code $?\nexit\n".encode(),
        )
        self.assertRegex(result.out, r"code 0\r?\n", result)
        self.assertNotIn("rank 0", result.out)
        self.assert_same()

    def test_the_tasks_of_a_step_share_the_work(self):
        result = self.slurm("srun", "-n", "3", "bash", "-c", self.coded())
        self.assert_shared(3, result.err)
        self.assertIn("SLURM_PROCID=2, SLURM_STEP_NUM_TASKS=3", result.err)

    def test_a_step_of_pmi2_is_one_of_slurm(self):
        result = self.slurm("srun", "-n", "2", "--mpi=pmi2", "bash", "-c", self.coded())
        self.assert_shared(2, result.err)
        self.assertIn("SLURM_STEP_NUM_TASKS=2", result.err)

    def test_a_step_of_one_task_in_a_larger_job_does_everything(self):
        self.assert_code(self.batch("-n", "4", script=f"srun -n 1 {self.command}"), 0)
        self.assert_same()

    def test_the_members_of_an_array_share_the_work(self):
        self.batch("-n", "1", "--array=1-5:2", script=self.coded())
        self.assert_shared(3, self.printed())
        self.assertIn("SLURM_ARRAY_TASK_ID=3 of 1 to 5 step 2", self.printed())

    def test_steps_in_an_array_multiply(self):
        self.batch("-n", "2", "--array=0-1", script=f"srun -n 2 bash -c '{self.coded()}'")
        self.assert_shared(4, self.printed())

    def test_an_array_with_gaps_is_refused(self):
        self.batch("-n", "1", "--array=1,2,5", script=self.coded())
        self.assertEqual(self.codes(), [2, 2, 2])
        self.assertIn("not evenly spaced", self.printed())

    def test_a_job_submitted_from_a_step_is_not_in_that_step(self):
        """sbatch hands SLURM_STEP_ID and SLURM_STEP_NUM_TASKS on."""
        result = self.slurm(
            "srun", "-n", "1", "sbatch", "-W", "-n", "3", "-o", f"{self.log}.1", "--wrap", self.command
        )
        self.assert_code(result, 0)
        self.assertNotIn("rank", self.printed())
        self.assert_same()

    def test_mpirun_in_a_job(self):
        need("mpirun")
        result = self.batch(
            "-n", "3", script=f"mpirun --allow-run-as-root --oversubscribe -n 3 {self.command}"
        )
        self.assert_code(result, 0)
        self.assertIn("rank 2 of 3 (OMPI_COMM_WORLD_RANK=2", self.printed())
        self.assert_same()


if __name__ == "__main__":
    main()
