#!/usr/bin/env python3
"""Inference over a data set: batch sizes, number formats, and ways to run the network.

    python inference.py out/val --arch resnet50 --batch-sizes 32,256 --dtypes float32,float16,bfloat16

Ways: eager, TorchScript, torch.compile; ONNX Runtime and TensorRT (torch_tensorrt) where they are installed,
else a line says why not. All get the same batches of the loader, in stored order; each way's answers are held
against eager float32. Needs torch and torchvision.
"""

import argparse
import copy
import io
import time

import torch
import torchvision

import shardloader as sl
from support import Clock


def eager(net, example):
    return net


def torchscript(net, example):
    return torch.jit.freeze(torch.jit.trace(net, example))


def compiled(net, example):
    return torch.compile(net)


def onnxruntime(net, example):
    import onnxruntime as ort

    if example.dtype == torch.bfloat16:
        raise ValueError("numpy, through which its inputs go, has no bfloat16")
    file = io.BytesIO()
    torch.onnx.export(net, (example,), file, input_names=["images"], output_names=["answers"], dynamo=False)
    gpu = example.device.type == "cuda"
    if gpu and "CUDAExecutionProvider" not in ort.get_available_providers():
        raise ValueError("this ONNX Runtime has no CUDA")
    session = ort.InferenceSession(
        file.getvalue(), providers=["CUDAExecutionProvider" if gpu else "CPUExecutionProvider"]
    )

    def run(images):
        if not gpu:
            return torch.from_numpy(session.run(None, {"images": images.numpy()})[0])
        binding, answers = (
            session.io_binding(),
            torch.empty(len(images), 1000, dtype=images.dtype, device=images.device),
        )
        kind = {torch.float32: "float32", torch.float16: "float16"}[images.dtype]
        for bind, name, tensor in (
            (binding.bind_input, "images", images),
            (binding.bind_output, "answers", answers),
        ):
            bind(name, "cuda", images.device.index, kind, tuple(tensor.shape), tensor.data_ptr())
        torch.cuda.current_stream().synchronize()  # it runs in a stream of its own
        session.run_with_iobinding(binding)
        return answers

    return run


def tensorrt(net, example):
    import torch_tensorrt

    if example.device.type != "cuda":
        raise ValueError("it runs on GPUs only")
    return torch_tensorrt.compile(net, inputs=[example], enabled_precisions={example.dtype})


WAYS = {
    "eager": eager,
    "TorchScript": torchscript,
    "compile": compiled,
    "ONNX Runtime": onnxruntime,
    "TensorRT": tensorrt,
}


@torch.inference_mode()
def answers_of(run, loader, device, limit):
    """Classes of each batch, and samples/s without the first batch (which may compile)."""
    clock, classes, samples, begin = Clock(device), [], 0, 0.0
    for batch in loader:  # the next epoch: in stored order all are the same
        images, _ = batch
        classes.append(run(images).argmax(1))
        if batch.batch_index == 0:
            clock.wait()
            begin = time.perf_counter()
        else:
            samples += len(images)
        if batch.batch_index + 1 == limit:
            break
    clock.wait()
    return torch.cat(classes).cpu(), samples / max(1e-9, time.perf_counter() - begin)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data")
    parser.add_argument(
        "--arch", default="resnet18", help="a function of torchvision.models with 1000 answers"
    )
    parser.add_argument("--weights", help="of that function, for example DEFAULT (torchvision fetches them)")
    parser.add_argument("--batch-sizes", default="1,32,256")
    parser.add_argument("--dtypes", default="float32,float16,bfloat16")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--batches", type=int, default=200, help="at most so many")
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    device = torch.device(args.device)
    torch.manual_seed(0)
    net = getattr(torchvision.models, args.arch)(weights=args.weights).eval().to(device)
    data = sl.Dataset(args.data)
    stored_float = data.dtype != "uint8"
    print(f"{'batch':>6}  {'dtype':10}{'way':14}{'samples/s':>12}{'as eager float32':>19}")
    for size in map(int, args.batch_sizes.split(",")):
        reference = None
        for name in args.dtypes.split(","):
            dtype = getattr(torch, name)
            with sl.Loader(
                data,
                batch_size=size,
                device=device,
                framework="torch",
                shuffle=False,
                layout="nchw",
                dtype=data.dtype if stored_float else name,
            ) as loader:
                for way in args.ways.split(","):
                    torch._dynamo.reset()
                    typed = copy.deepcopy(net).to(dtype)
                    example = torch.zeros(size, *loader.shape, dtype=dtype, device=device)
                    try:
                        run = WAYS[way](typed, example)
                        step = (
                            (lambda images, run=run, dtype=dtype: run(images.to(dtype)))
                            if stored_float
                            else run
                        )
                        classes, rate = answers_of(step, loader, device, args.batches)
                    except (ImportError, ValueError, RuntimeError, NotImplementedError) as error:
                        print(f"{size:6}  {name:10}{way:14}   not here: {str(error).splitlines()[0][:80]}")
                        continue
                    reference = classes if reference is None else reference
                    print(
                        f"{size:6}  {name:10}{way:14}{rate:12.0f}"
                        f"{100 * (classes == reference).float().mean().item():17.2f} %",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
