//! Other frameworks' code beside ours, which runs here. The tables of docs/from-pytorch.md and docs/from-flux.md are made
//! from this file by `cargo xtask docs --bless`: a row is the comments and the Rust below, up to an empty line.

use consort::prelude::*;
use consort::{Kind, data, device, nn};

#[test]
fn devices() -> Result<()> {
    // # Devices
    // pytorch: torch.cuda.is_available()
    // flux: CUDA.functional()
    let functional = device::functional(Kind::Cuda);

    // pytorch: torch.device("cuda" if torch.cuda.is_available() else "cpu")
    // flux: gpu_device()
    let best = device::best();

    // pytorch: torch.device("cuda:0")
    // flux: gpu_device(1; force = true)
    let first_gpu = device::cuda(0);

    // pytorch: torch.device("cpu")
    // flux: cpu_device()
    let device = device::cpu();

    // pytorch: x.to(device)
    // flux: x |> device
    let x = Tensor::ones([2, 3], &device)?;
    let x = x.to(&device)?;

    // pytorch: x.device
    // flux: get_device(x)
    let place = x.device();

    // pytorch: torch.cuda.synchronize()
    // flux: CUDA.synchronize()
    device.synchronize()?;

    // pytorch: torch.manual_seed(42)
    // flux: Random.seed!(42)
    consort::seed(42);

    assert_eq!((functional, place), (first_gpu.is_ok(), device));
    assert!(best.info().is_hardware);
    Ok(())
}

#[test]
fn tensors() -> Result<()> {
    let device = device::cpu();
    // # Creating tensors
    // pytorch: torch.tensor([1.0, 2.0])
    // flux: Float32[1, 2]
    let x = Tensor::from_vec(vec![1.0f32, 2.0], [2], &device)?;

    assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0]);

    // pytorch: torch.zeros(2, 3)
    // flux: zeros(Float32, 2, 3)
    let x = Tensor::zeros([2, 3], &device)?;

    // pytorch: torch.full((2, 3), 0.5)
    // flux: fill(0.5f0, 2, 3)
    let half = Tensor::full([2, 3], 0.5, &device)?;

    // pytorch: torch.arange(0, 10, 1.0)
    // flux: collect(0f0:9f0)
    let steps = Tensor::arange(0.0, 10.0, 1.0, &device)?;

    // pytorch: torch.randn(2, 3, dtype=torch.float64)
    // flux: randn(2, 3)
    let noise = Tensor::randn([2, 3], (&device, DType::F64))?;

    assert_eq!((half.sum(..)?.item::<f32>()?, steps.len(), noise.dtype()), (3.0, 10, DType::F64));

    // # Looking at tensors
    // pytorch: x.shape, x.ndim, x.numel(), x.dtype
    // flux: size(x), ndims(x), length(x), eltype(x)
    let facts = (x.dims(), x.rank(), x.len(), x.dtype());

    // pytorch: print(x)
    // flux: display(x)
    println!("{x}");

    // pytorch: x.flatten().tolist()
    // flux: vec(Array(x))
    let values = x.to_vec::<f32>()?;

    // pytorch: x.sum().item()
    // flux: sum(x)
    let sum = x.sum(..)?.item::<f32>()?;

    // pytorch: x.numpy()
    // flux: Array(x)
    let array = x.to_ndarray::<f32>()?;

    // pytorch: x.to(torch.float16)
    // flux: Float16.(x)
    let small = x.cast(DType::F16)?;

    assert_eq!(facts, (&[2, 3][..], 2, 6, DType::F32));
    assert_eq!((values, sum), (vec![0.0; 6], 0.0));
    assert_eq!((array.shape(), small.dtype()), (&[2, 3][..], DType::F16));
    Ok(())
}

#[test]
fn arithmetic() -> Result<()> {
    let device = device::cpu();
    let a = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [2, 2], &device)?;
    let b = Tensor::from_vec(vec![4.0f32, 3.0, 2.0, 1.0], [2, 2], &device)?;
    // # Elementwise
    // pytorch: a + b
    // flux: a .+ b
    let y = &a + &b;

    // pytorch: 2 * a - 1
    // flux: 2 .* a .- 1
    let z = 2.0 * &a - 1.0;

    assert_eq!(y.to_vec::<f32>()?, [5.0; 4]);
    assert_eq!(z.to_vec::<f32>()?, [1.0, 3.0, 5.0, 7.0]);

    // pytorch: a.exp()
    // flux: exp.(a)
    let e = a.exp()?;

    // pytorch: F.gelu(a)
    // flux: gelu_erf.(a)
    let g = a.gelu()?;

    // pytorch: torch.maximum(a, b)
    // flux: max.(a, b)
    let larger = a.maximum(&b)?;

    // pytorch: torch.where(a > b, a, b)
    // flux: ifelse.(a .> b, a, b)
    let same = a.gt(&b)?.select(&a, &b)?;

    assert!(larger.allclose(&same, 0.0, 0.0)?);

    // pytorch: a * a.sigmoid()
    // flux: (x -> x * sigmoid(x)).(a)
    let swish = a.map(|x| x * x.sigmoid())?;

    // pytorch: (a - b).abs()
    // flux: abs.(a .- b)
    let distance = consort::zip(&a, &b, |a, b| (a - b).abs())?;

    assert_eq!(distance.to_vec::<f32>()?, [3.0, 1.0, 1.0, 3.0]);
    assert!(swish.allclose(&a.silu()?, 1e-6, 0.0)? && e.gt(&g)?.all(..)?.item::<bool>()?);

    // # Reducing
    // pytorch: a.sum(dim=1)
    // flux: sum(a; dims = 2)
    let rows = a.sum(1)?;

    // pytorch: a.mean()
    // flux: mean(a)
    let mean = a.mean(..)?;

    // pytorch: a.amax(dim=0, keepdim=True)
    // flux: maximum(a; dims = 1)
    let most = a.max_keepdim(0)?;

    // pytorch: a.argmax(dim=-1)
    // flux: argmax(a; dims = 2)
    let winners = a.argmax(-1)?;

    // pytorch: a.softmax(dim=-1)
    // flux: softmax(a; dims = 2)
    let p = a.softmax(-1)?;

    assert_eq!(rows.to_vec::<f32>()?, [3.0, 7.0]);
    assert_eq!((mean.item::<f32>()?, most.dims()), (2.5, &[1, 2][..]));
    assert_eq!(winners.to_vec::<i64>()?, [1, 1]);
    assert!(p.sum(-1)?.allclose(&Tensor::ones([2], &device)?, 1e-6, 0.0)?);

    // # Matrices
    // pytorch: a @ b
    // flux: a * b
    let product = a.matmul(&b)?;

    // pytorch: a.T
    // flux: permutedims(a)
    let transposed = a.t()?;

    // pytorch: torch.einsum("ij,kj->ik", a, b)
    // flux: @tullio c[i, k] := a[i, j] * b[k, j]
    let c = consort::einsum("ij,kj->ik", &[&a, &b])?;

    assert_eq!(product.to_vec::<f32>()?, [8.0, 5.0, 20.0, 13.0]);
    assert!(c.allclose(&a.matmul(&b.t()?)?, 1e-6, 0.0)?);
    assert_eq!(transposed.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    Ok(())
}

#[test]
fn shapes() -> Result<()> {
    let device = device::cpu();
    let x = Tensor::arange(0.0, 24.0, 1.0, &device)?.reshape([2, 3, 4])?;
    // # Shapes
    // pytorch: x.reshape(2, -1)
    // flux: reshape(x, 2, :)
    let flat = x.reshape((2, -1))?;

    // pytorch: x.permute(2, 0, 1)
    // flux: permutedims(x, (3, 1, 2))
    let moved = x.permute([2, 0, 1])?;

    // pytorch: x.unsqueeze(0)
    // flux: Flux.unsqueeze(x; dims = 1)
    let batch = x.unsqueeze(0)?;

    // pytorch: x[:, 0:2]
    // flux: x[:, 1:2, :]
    let part = x.slice(1, 0..2, 1)?;

    // pytorch: x.flip(-1)
    // flux: reverse(x; dims = 3)
    let reversed = x.flip(-1)?;

    // pytorch: torch.cat([x, x], dim=0)
    // flux: cat(x, x; dims = 1)
    let twice = Tensor::cat(&[&x, &x], 0)?;

    // pytorch: torch.stack([x, x])
    // flux: stack([x, x]; dims = 1)
    let pair = Tensor::stack(&[&x, &x], 0)?;

    // pytorch: x.index_select(0, rows)
    // flux: x[rows, :, :]
    let rows = Tensor::from_vec(vec![1i64], [1], &device)?;
    let picked = x.index_select(0, &rows)?;

    // pytorch: F.one_hot(labels, 10)
    // flux: Flux.onehotbatch(labels, 0:9)
    let labels = Tensor::from_vec(vec![3i64, 9], [2], &device)?;
    let one_hot = labels.one_hot(10)?;

    assert_eq!((flat.dims(), moved.dims()), (&[2, 12][..], &[4, 2, 3][..]));
    assert_eq!((batch.dims(), part.dims()), (&[1, 2, 3, 4][..], &[2, 2, 4][..]));
    assert_eq!((twice.dims(), pair.dims()), (&[4, 3, 4][..], &[2, 2, 3, 4][..]));
    assert_eq!((picked.dims(), one_hot.dims()), (&[1, 3, 4][..], &[2, 10][..]));
    assert_eq!(reversed.to_vec::<f32>()?[0], 3.0);
    Ok(())
}

// # Models
// pytorch: class Mlp(nn.Module): def __init__(self): …
// flux: struct Mlp; hidden; output; end; Flux.@layer Mlp
#[derive(Module, Clone, Debug)]
struct Mlp {
    hidden: nn::Linear,
    output: nn::Linear,
}

// pytorch: def forward(self, x): return self.output(F.relu(self.hidden(x)))
// flux: (m::Mlp)(x) = m.output(relu.(m.hidden(x)))
impl Forward for Mlp {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.output.forward(&self.hidden.forward(x)?.relu()?)
    }
}

#[test]
fn models() -> Result<()> {
    let device = device::cpu();
    let mlp = Mlp { hidden: nn::Linear::new(2, 3, &device)?, output: nn::Linear::new(3, 1, &device)? };
    // pytorch: nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    // flux: Chain(Dense(2 => 3, relu), Dense(3 => 1))
    let model = chain![nn::Linear::new(2, 3, &device)?, nn::Relu, nn::Linear::new(3, 1, &device)?];

    // pytorch: model(x)
    // flux: model(x)
    let x = Tensor::ones([4, 2], &device)?;
    let y = model.forward(&x)?;

    // pytorch: model.to(device)
    // flux: model |> device
    let mut model = model.to(&device)?;

    // pytorch: sum(p.numel() for p in model.parameters())
    // flux: sum(length, Flux.trainables(model))
    let n = model.n_parameters();

    // pytorch: [name for name, p in model.named_parameters()]
    // flux: first.(Flux.trainables(model; path = true))
    let paths: Vec<String> = model.named_parameters().into_iter().map(|(path, _)| path).collect();

    // pytorch: print(model)
    // flux: display(model)
    println!("{model}");

    // pytorch: model.eval()
    // pytorch: with torch.no_grad(): y = model(x)
    // flux: testmode!(model); y = model(x)
    let inferred = model.forward(&x)?;

    // pytorch: model.requires_grad_(False)
    // flux: Flux.freeze!(optimizer)
    model.freeze();

    assert!(with_gradient(&model, |m| m.forward(&x)?.sum(..)).is_err(), "nothing is left to train");
    assert!(inferred.allclose(&y, 0.0, 0.0)?);
    assert_eq!((y.dims(), n), (&[4, 1][..], 13));
    assert_eq!(paths, ["0.weight", "0.bias", "2.weight", "2.bias"]);
    assert_eq!(mlp.forward(&x)?.dims(), [4, 1]);
    Ok(())
}

#[test]
fn training() -> Result<()> {
    let device = device::cpu();
    let mut model = chain![nn::Linear::new(2, 8, &device)?, nn::Relu, nn::Linear::new(8, 3, &device)?];
    let x = Tensor::rand([16, 2], &device)?;
    let labels = Tensor::randint(0, 3, [16], &device)?;
    // # Gradients and training
    // pytorch: x.requires_grad_(); x.square().sum().backward(); x.grad
    // flux: gradient(x -> sum(abs2, x), x)[1]
    let slope = nn::gradient(|x| x.square()?.sum(..), &x)?;

    assert!(slope.allclose(&(2.0 * &x), 1e-6, 0.0)?);

    // pytorch: torch.autograd.gradcheck(f, x)
    // flux: FiniteDifferences.grad(central_fdm(2, 1), f, x)[1]
    let by_differences = nn::numerical_gradient(|x| x.square()?.sum(..), &x)?;

    assert!(by_differences.allclose(&slope, 1e-2, 1e-2)?);

    // pytorch: x.detach()
    // flux: ChainRulesCore.ignore_derivatives(x)
    let constant = x.stop_gradient();

    assert!(constant.is_same(&x));

    // pytorch: loss = F.cross_entropy(model(x), labels)
    // pytorch: loss.backward()
    // flux: loss, grads = Flux.withgradient(m -> logitcrossentropy(m(x), onehotbatch(labels, 0:2)), model)
    let (loss, grads) = with_gradient(&model, |m| nn::loss::cross_entropy(&m.forward(&x)?, &labels))?;

    // pytorch: torch.optim.Adam(model.parameters(), lr=1e-2)
    // flux: Flux.setup(Adam(1f-2), model)
    let mut optimizer = nn::optim::Adam::new(1e-2).setup(&model)?;

    // pytorch: optimizer.step(); optimizer.zero_grad()
    // flux: Flux.update!(optimizer, model, grads[1])
    optimizer.update(&mut model, &grads)?;

    // pytorch: for group in optimizer.param_groups: group["lr"] = 1e-3
    // flux: Flux.adjust!(optimizer, 1f-3)
    optimizer.set_learning_rate(1e-3);

    // pytorch: nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    let clipping = nn::optim::Adam::new(1e-2).setup(&model)?.clip_by_norm(1.0);

    // pytorch: loss.item()
    // flux: loss
    let before = loss.item::<f32>()?;

    assert_eq!((optimizer.learning_rate(), clipping.learning_rate()), (1e-3, 1e-2));
    let after = nn::loss::cross_entropy(&model.forward(&x)?, &labels)?.item::<f32>()?;
    assert!(after < before, "{after} is not below {before}");
    Ok(())
}

#[test]
fn data_and_files() -> Result<()> {
    let device = device::cpu();
    let mut model = nn::Linear::new(2, 3, &device)?;
    let (x, y) = (Tensor::rand([100, 2], &device)?, Tensor::randint(0, 3, [100], &device)?);
    // # Data
    // pytorch: TensorDataset(x, y)
    // flux: (x, y)
    let set = data::TensorDataset::new((x, y))?;

    // pytorch: random_split(set, [0.8, 0.2])
    // flux: splitobs((x, y); at = 0.8, shuffle = true)
    let (train, test) = data::split(set, 0.8, 42)?;

    // pytorch: DataLoader(train, batch_size=32, shuffle=True, num_workers=2)
    // flux: DataLoader(train; batchsize = 32, shuffle = true, parallel = true)
    let loader = data::DataLoader::new(train).batch_size(32).shuffle(42).workers(2).device(&device);

    // pytorch: for x, y in loader: …
    // flux: for (x, y) in loader … end
    for batch in loader.iter() {
        let (x, y) = batch?;
        assert_eq!(x.dims()[0], y.dims()[0]);
    }

    assert_eq!(data::Dataset::len(&test), 20);
    let path = std::env::temp_dir().join(format!("consort-side-by-side-{}.safetensors", std::process::id()));
    // # Files
    // pytorch: safetensors.torch.save_model(model, path)
    // flux: JLD2.jldsave(path; state = Flux.state(model))
    nn::save(&model, &path)?;

    // pytorch: safetensors.torch.load_model(model, path)
    // flux: Flux.loadmodel!(model, JLD2.load(path, "state"))
    nn::load(&mut model, &path)?;

    std::fs::remove_file(&path).expect("the file was saved");
    Ok(())
}
