"""Trainings with the real packages, in as many processes as users start: each epoch's samples once,
and the same on resuming."""

import os
import subprocess
import sys
import textwrap

import pytest

import shardloader as sl
from conftest import SAMPLES, ids_of

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def start(script, *arguments, processes=1, torchrun=True, tmp_path, **environment):
    """Runs the script, under torchrun if there are several processes that it does not start itself;
    returns what each rank wrote to OUT/RANK."""
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(script))
    out = tmp_path / "out"
    out.mkdir(exist_ok=True)
    launcher = [sys.executable]
    if processes > 1 and torchrun:
        launcher += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    env = {**os.environ, "OUT": str(out), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", **environment}
    done = subprocess.run(
        [*launcher, str(path), *map(str, arguments)],
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return [sorted_lines(out / str(rank)) for rank in range(processes)]


def sorted_lines(path):
    """Lines "EPOCH ID ID ..." as {epoch: [id, ...]}."""
    seen = {}
    for line in path.read_text().splitlines():
        epoch, *ids = (int(word) for word in line.split())
        seen.setdefault(epoch, []).extend(ids)
    return seen


def assert_shared_by_ranks(seen, epochs):
    for epoch in range(epochs):
        parts = [rank[epoch] for rank in seen]
        assert all(len(part) == len(parts[0]) for part in parts)
        together = [i for part in parts for i in part]
        assert len(set(together)) == len(together) == SAMPLES // 2 // 10 * 2 * 10


def test_ddp_under_torchrun(folder, tmp_path):
    seen = start(
        """
        import os, sys, torch, shardloader as sl
        torch.distributed.init_process_group("gloo")
        rank = torch.distributed.get_rank()
        net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 3))
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        loader = sl.Loader(sys.argv[1], batch_size=10, framework="torch", dtype="float32", seed=1)
        with open(os.path.join(os.environ["OUT"], str(rank)), "w") as out:
            for epoch in range(2):
                for batch in loader.epoch(epoch):
                    print(epoch, *batch.ids.tolist(), file=out)
                    torch.nn.functional.cross_entropy(net(batch.images.mean((2, 3))), batch.labels).backward()
                    optimizer.step()
        weights = [torch.zeros(3, 3) for _ in range(2)]
        torch.distributed.all_gather(weights, net.module.weight.detach())
        assert torch.equal(*weights)
        torch.distributed.destroy_process_group()
        """,
        folder,
        processes=2,
        tmp_path=tmp_path,
    )
    assert_shared_by_ranks(seen, 2)


def test_lightning_with_ddp(folder, tmp_path):
    pytest.importorskip("lightning.pytorch", reason="Lightning is not installed")
    seen = start(
        """
        import os, sys, torch, lightning.pytorch as lightning, shardloader as sl

        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = torch.nn.Linear(3, 3)
                self.out = None

            def training_step(self, batch, index):
                self.out = self.out or open(os.path.join(os.environ["OUT"], str(self.global_rank)), "w")
                print(self.current_epoch, *batch.ids.tolist(), file=self.out, flush=True)
                assert batch.epoch == self.current_epoch
                return torch.nn.functional.cross_entropy(self.net(batch.images.mean((2, 3))), batch.labels)

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), 0.1)

        trainer = lightning.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=2, logger=False,
                                    enable_progress_bar=False, enable_model_summary=False,
                                    enable_checkpointing=False)
        loader = sl.Loader(sys.argv[1], batch_size=10, framework="torch", dtype="float32", seed=1)
        trainer.fit(Module(), loader)
        """,
        folder,
        processes=2,
        tmp_path=tmp_path,
    )
    assert_shared_by_ranks(seen, 2)


def test_lightning_starts_its_own_processes_and_validates(folder, tmp_path):
    """Started as a plain program: Lightning starts the second process,
    which has WORLD_SIZE and no RANK when its loaders are made."""
    pytest.importorskip("lightning.pytorch", reason="Lightning is not installed")
    seen = start(
        """
        import os, sys, torch, lightning.pytorch as lightning, shardloader as sl

        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = torch.nn.Linear(3, 3)
                self.out = None

            def note(self, epoch, ids):
                self.out = self.out or open(os.path.join(os.environ["OUT"], str(self.global_rank)), "w")
                print(epoch, *ids.tolist(), file=self.out, flush=True)

            def training_step(self, batch, index):
                assert batch.epoch == self.current_epoch
                self.note(self.current_epoch, batch.ids)
                return torch.nn.functional.cross_entropy(self.net(batch.images.mean((2, 3))), batch.labels)

            def validation_step(self, batch, index):
                self.note(100 + self.current_epoch, batch.ids)

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), 0.1)

        options = {"framework": "torch", "dtype": "float32"}
        trainer = lightning.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=2, logger=False,
                                    enable_progress_bar=False, enable_model_summary=False,
                                    enable_checkpointing=False, num_sanity_val_steps=0)
        train = sl.Loader(sys.argv[1], batch_size=10, seed=1, **options)
        val = sl.Loader(sys.argv[1], batch_size=8, shuffle=False, drop_last=False, **options)
        trainer.fit(Module(), train, val)
        """,
        folder,
        processes=2,
        torchrun=False,
        tmp_path=tmp_path,
    )
    assert_shared_by_ranks(seen, 2)
    for epoch in (100, 101):
        assert sorted(i for rank in seen for i in rank[epoch]) == list(range(SAMPLES))


def test_lightning_overfits_the_same_batches_of_a_loader_in_order(folder, tmp_path):
    lightning = pytest.importorskip("lightning.pytorch", reason="Lightning is not installed")
    seen = []

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(3, 3)

        def training_step(self, batch, index):
            seen.append((self.current_epoch, tuple(batch.ids.tolist())))
            return torch.nn.functional.cross_entropy(self.net(batch.images.mean((2, 3))), batch.labels)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=3,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        overfit_batches=2,
        default_root_dir=tmp_path,
    )
    trainer.fit(Module(), sl.Loader(folder, batch_size=10, framework="torch", dtype="float32", shuffle=False))
    assert seen == [(epoch, tuple(range(10 * i, 10 * i + 10))) for epoch in range(3) for i in range(2)]


LIGHTNING_THAT_IS_KILLED = """
    import os, sys, torch, lightning.pytorch as lightning, shardloader as sl
    from lightning.pytorch.callbacks import ModelCheckpoint

    folder, checkpoints = sys.argv[1:3]
    killed_at, resume = int(sys.argv[3]), sys.argv[4] == "resume"

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(3, 3)
            self.out = None

        def training_step(self, batch, index):
            if self.global_step == killed_at:
                os._exit(0)
            self.out = self.out or open(os.path.join(os.environ["OUT"], str(self.global_rank)), "w")
            print(self.current_epoch, *batch.ids.tolist(), file=self.out, flush=True)
            assert (batch.epoch, batch.batch_index) == (self.current_epoch, index)
            return torch.nn.functional.cross_entropy(self.net(batch.images.mean((2, 3))), batch.labels)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    lightning.seed_everything(0)
    saved = ModelCheckpoint(dirpath=checkpoints, filename="state", every_n_train_steps=8,
                            enable_version_counter=False)
    trainer = lightning.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=2, logger=False,
                                enable_progress_bar=False, enable_model_summary=False, callbacks=[saved])
    module = Module()
    trainer.fit(module, sl.Loader(folder, batch_size=5, framework="torch", dtype="float32", seed=1),
                ckpt_path=os.path.join(checkpoints, "state.ckpt") if resume else None)
    if trainer.is_global_zero:
        torch.save(module.net.state_dict(), os.path.join(os.environ["OUT"], "weights"))
    """


def test_lightning_with_ddp_resumes_in_the_epoch(folder, tmp_path):
    """Killed at step 10, in the second epoch of 6 steps; it goes on from the checkpoint of step 8,
    as if it had never stopped."""
    pytest.importorskip("lightning.pytorch", reason="Lightning is not installed")

    def run(name, killed_at, how):
        (tmp_path / name).mkdir()
        return start(
            LIGHTNING_THAT_IS_KILLED,
            folder,
            tmp_path / f"{how}-checkpoints",
            killed_at,
            how,
            processes=2,
            tmp_path=tmp_path / name,
        )

    whole = run("whole", -1, "start")
    assert_shared_by_ranks(whole, 2)
    (tmp_path / "start-checkpoints").rename(tmp_path / "of the whole")
    killed = run("killed", 10, "start")
    assert [len(rank[1]) for rank in killed] == [4 * 5, 4 * 5]
    (tmp_path / "start-checkpoints").rename(tmp_path / "resume-checkpoints")
    resumed = run("resumed", -1, "resume")
    for rank in range(2):
        assert resumed[rank].keys() == {1} and killed[rank][0] == whole[rank][0]
        assert killed[rank][1][: 2 * 5] + resumed[rank][1] == whole[rank][1]
    weights = [
        torch.load(tmp_path / name / "out" / "weights", weights_only=True) for name in ("whole", "resumed")
    ]
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])


def test_accelerate_with_two_processes(folder, tmp_path):
    pytest.importorskip("accelerate", reason="Accelerate is not installed")
    seen = start(
        """
        import os, sys, torch, accelerate, shardloader as sl
        accelerator = accelerate.Accelerator(cpu=True)
        net = torch.nn.Linear(3, 3)
        loader = sl.Loader(sys.argv[1], batch_size=10, framework="torch", dtype="float32", seed=1)
        net, optimizer, loader = accelerator.prepare(net, torch.optim.SGD(net.parameters(), 0.1), loader)
        with open(os.path.join(os.environ["OUT"], str(accelerator.process_index)), "w") as out:
            for epoch in range(2):
                loader.set_epoch(epoch)
                for batch in loader:
                    print(epoch, *batch.ids.tolist(), file=out)
                    answers = net(batch.images.mean((2, 3)))
                    accelerator.backward(torch.nn.functional.cross_entropy(answers, batch.labels))
                    optimizer.step()
        accelerator.end_training()
        """,
        folder,
        processes=2,
        tmp_path=tmp_path,
    )
    assert_shared_by_ranks(seen, 2)


# --- transformers -------------------------------------------------------------------------------------------


def tiny_model(seen, loader):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(3, 3)

        def forward(self, pixel_values, labels):
            if self.training:
                seen.append((loader.state_dict()["epoch"], tuple(labels.tolist())))
            logits = self.net(pixel_values.mean((2, 3)))
            return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}

    return Model()


def trainer_of(folder, tmp_path, seen, **arguments):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    from shardloader.transformers import LoaderTrainer

    options = {"batch_size": 10, "framework": "torch", "dtype": "float32"}
    train = sl.Loader(folder, seed=1, **options)
    val = sl.Loader(folder, shuffle=False, drop_last=False, **{**options, "batch_size": 16})
    settings = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        logging_strategy="no",
        **{"num_train_epochs": 2, **arguments},
    )
    return LoaderTrainer(
        tiny_model(seen, train),
        settings,
        train_dataset=train,
        eval_dataset=val,
        compute_metrics=lambda p: {"seen": len(p.label_ids)},
    )


def test_transformers_trains_each_epoch_once_and_evaluates_all(folder, tmp_path):
    seen = []
    trainer = trainer_of(folder, tmp_path, seen, save_strategy="no")
    done = trainer.train()
    assert done.global_step == 12
    expected = sl.Loader(folder, seed=1, batch_size=10, framework="numpy")
    assert seen == [
        (epoch, tuple(batch.labels.tolist())) for epoch in range(2) for batch in expected.epoch(epoch)
    ]
    assert trainer.evaluate()["eval_seen"] == SAMPLES


def test_transformers_accumulates_more_batches_than_the_loader_has(folder, tmp_path):
    seen = []
    how = {"gradient_accumulation_steps": 6, "num_train_epochs": 1}
    trainer = trainer_of(folder, tmp_path, seen, save_strategy="no", **how)
    trainer.train()
    expected = sl.Loader(folder, seed=1, batch_size=10, framework="numpy")
    assert seen == [(0, tuple(batch.labels.tolist())) for batch in expected.epoch(0)]


def test_transformers_refuses_what_is_no_loader(folder, tmp_path):
    trainer = trainer_of(folder, tmp_path, [], save_strategy="no")
    trainer.train_dataset = [1, 2]
    with pytest.raises(TypeError, match="train_dataset is a list; LoaderTrainer takes a shardloader.Loader"):
        trainer.train()


def test_transformers_resumes_in_the_epoch(folder, tmp_path):
    whole, first, second = [], [], []
    trainer_of(folder, tmp_path / "whole", whole, save_strategy="no").train()
    trainer_of(folder, tmp_path, first, save_strategy="steps", save_steps=8, max_steps=8).train()
    trainer = trainer_of(folder, tmp_path, second, save_strategy="no", ignore_data_skip=True)
    state = sl.Loader(folder, seed=1, batch_size=10, framework="torch", dtype="float32")
    batches = state.epoch(1)
    for _ in range(2):
        next(batches)
    trainer.train_dataset.load_state_dict(state.state_dict())
    trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-8"))
    assert first + second == whole


@pytest.mark.parametrize("step, accumulate", [(8, 1), (6, 1), (1, 1), (12, 1), (2, 2), (3, 2), (4, 2)])
def test_transformers_resumes_by_a_checkpoint_alone(folder, tmp_path, step, accumulate):
    """In the middle of an epoch (6 batches), at its end, and at the end of the run;
    with batches that are accumulated."""
    whole, first, second = [], [], []
    options = {"gradient_accumulation_steps": accumulate}
    trainer_of(folder, tmp_path / "whole", whole, save_strategy="no", **options).train()
    trainer_of(
        folder, tmp_path, first, save_strategy="steps", save_steps=step, max_steps=step, **options
    ).train()
    trainer = trainer_of(folder, tmp_path, second, save_strategy="no", **options)
    done = trainer.train(resume_from_checkpoint=str(tmp_path / f"checkpoint-{step}"))
    assert first + second == whole and done.global_step == 12 // accumulate
    assert len(first) == step * accumulate


def test_transformers_with_two_processes_resumes(folder, tmp_path):
    pytest.importorskip("transformers", reason="transformers is not installed")
    script = """
        import os, sys, torch, transformers, shardloader as sl
        from shardloader.transformers import LoaderTrainer

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = torch.nn.Linear(3, 3)

            def forward(self, pixel_values, labels):
                logits = self.net(pixel_values.mean((2, 3)))
                return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}

        class Noted(sl.transformers.Inputs):
            def __iter__(self):
                with open(os.path.join(os.environ["OUT"], os.environ["RANK"]), "a") as out:
                    for batch in self.loader:
                        print(batch.epoch, *batch.ids.tolist(), file=out, flush=True)
                        yield {"pixel_values": batch.images, "labels": batch.labels}

        sl.transformers.Inputs = Noted
        folder, where, steps, resume = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "resume"
        settings = transformers.TrainingArguments(
            output_dir=where, use_cpu=True, report_to=[], disable_tqdm=True, logging_strategy="no",
            num_train_epochs=2, max_steps=steps, save_strategy="steps", save_steps=4)
        train = sl.Loader(folder, batch_size=10, seed=1, framework="torch", dtype="float32")
        LoaderTrainer(Model(), settings, train_dataset=train).train(resume_from_checkpoint=resume)
        # Trainer leaves its process group open, and then PyTorch may abort at the end of a process
        # ("terminate called without an active exception", pytorch/pytorch#190489).
        torch.distributed.destroy_process_group()
        """

    def run(name, where, steps, how):
        (tmp_path / name).mkdir()
        return start(script, folder, tmp_path / where, steps, how, processes=2, tmp_path=tmp_path / name)

    whole = run("whole", "a", 6, "start")
    assert_shared_by_ranks(whole, 2)
    first = run("first", "b", 4, "start")
    try:
        rest = run("rest", "b", 6, "resume")
    except AssertionError as error:
        if "(tagged with cpu:0)" not in str(error):
            raise
        pytest.skip("this transformers asks PyTorch to load a checkpoint to cpu:0, which it cannot do")
    for rank in range(2):
        assert first[rank][0] + first[rank].get(1, []) + rest[rank][1] == whole[rank][0] + whole[rank][1]


# --- torch.compile ------------------------------------------------------------------------------------------


def test_torch_compile_trains_on_batches(data):
    loader = sl.Loader(data, batch_size=10, framework="torch", dtype="float32", seed=1)
    net = torch.nn.Linear(3, 3)
    try:
        compiled = torch.compile(lambda images: net(images.mean((2, 3))))
        compiled(torch.zeros(10, 3, 32, 32))
    except Exception as error:  # no compiler of C++ for its code
        pytest.skip(f"torch.compile does not work here: {type(error).__name__}")
    for images, labels in loader.epoch(0):
        torch.testing.assert_close(compiled(images), net(images.mean((2, 3))))
        torch.nn.functional.cross_entropy(compiled(images), labels).backward()
    assert net.weight.grad is not None and len(ids_of(loader, 1)) == SAMPLES
