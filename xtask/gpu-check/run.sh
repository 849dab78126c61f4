#!/bin/sh
# Runs everything on this machine's GPU: PyTorch's times first, where it is installed with CUDA, then the program itself.
# Results go to results/ beside this file, or to the folder that OUT names. PYTHON names the interpreter.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$here/results}
python=${PYTHON:-python3}
mkdir -p "$out"
if "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
    "$python" "$here/torch_train.py" --device cuda --max-seconds 5 >"$out/pytorch.jsonl"
    "$python" "$here/torch_ops.py" >>"$out/pytorch.jsonl"
else
    echo "no PyTorch with CUDA in $python: no ratios" >&2
    : >"$out/pytorch.jsonl"
fi
exec "$here/gpu-check" --out "$out" --pytorch "$out/pytorch.jsonl" "$@"
