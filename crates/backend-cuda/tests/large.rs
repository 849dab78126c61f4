//! Tensors of more than 2³¹ elements, on a driver that has the memory and runs nothing: an op is refused by its name before
//! anything is launched, or reaches every element.

use backend_cuda::on_driver;
use tensor_core::{ConvOptions, DType, Device, PoolOptions, Result, Tensor};

#[path = "seam/nothing.rs"]
mod nothing;

use nothing::Nothing;

/// 2³² elements, which take no memory.
fn large(device: &Device, dtype: DType) -> Result<Tensor> {
    Tensor::ones([1, 1], (device, dtype))?.expand([1 << 16, 1 << 16])
}

#[test]
fn an_op_that_cannot_reach_every_element_is_refused_by_its_name() -> Result<()> {
    let driver = Nothing::new();
    let device = on_driver(driver.clone(), 0, true);
    let x = &large(&device, DType::F32)?;
    let index = &large(&device, DType::I64)?;
    let row = &Tensor::ones([1 << 16], &device)?;
    let image = &x.reshape([1, 1, 1 << 16, 1 << 16])?;
    type Work<'a> = Box<dyn Fn() -> Result<Tensor> + 'a>;
    // What is refused, and by which name: that of the op, not of a kernel that it shares with others.
    let works: [(&str, Work<'_>); 19] = [
        ("exp", Box::new(|| x.exp())),
        ("add", Box::new(|| x.add(row))),
        ("gt", Box::new(|| x.gt(0.0)?.select(x, row))),
        ("copy", Box::new(|| x.contiguous())),
        ("cast", Box::new(|| x.cast(DType::F16))),
        ("sum", Box::new(|| x.sum(..))),
        ("max", Box::new(|| x.max(..))),
        ("argmax", Box::new(|| x.flatten(..)?.argmax(0))),
        ("cumsum", Box::new(|| x.cumsum(1))),
        ("sort", Box::new(|| Ok(x.sort(1, false)?.0))),
        ("gather", Box::new(|| x.gather(1, index))),
        (
            "scatter_add",
            Box::new(|| row.reshape([1, -1])?.scatter_add(1, &index.reshape([1, -1])?, &x.reshape([1, -1])?)),
        ),
        ("cat", Box::new(|| Tensor::cat(&[x, x], 0))),
        ("pad", Box::new(|| x.pad(&[(0, 0), (1, 1)], 0.0))),
        ("matmul", Box::new(|| x.reshape([1, -1])?.matmul(&x.reshape([-1, 1])?))),
        ("conv", Box::new(|| image.conv2d(&Tensor::ones([1, 1, 3, 3], &device)?, None, &ConvOptions::default()))),
        ("rand", Box::new(|| Tensor::rand([1 << 16, 1 << 16], &device))),
        ("full", Box::new(|| Tensor::zeros([1 << 16, 1 << 16], &device))),
        ("arange", Box::new(|| Tensor::arange(0, 1_i64 << 32, 1, (&device, DType::I64)))),
    ];
    for (name, work) in works {
        let said = work().map_or_else(|e| e.to_string(), |y| format!("{} is made", y.shape()));
        assert!(
            said.starts_with(&format!("{name}: has too many elements for one kernel: elements 4")),
            "{name}: {said}"
        );
        assert!(said.ends_with(", limit 2147483647; split the tensor"), "{said}");
    }

    // Positions in a plane are i32, on every device.
    let said = image.max_pool2d(&PoolOptions::new(2)).map_or_else(|e| e.to_string(), |_| "no error".into());
    assert_eq!(
        said,
        "max_pool: positions in the spatial plane are i32: input [1, 1, 65536, 65536], elements of a plane 4294967296, \
         limit 2147483647; pool parts of it"
    );

    // Rows and columns count by themselves: here 2¹⁶ each.
    let product = x.narrow(1, 0, 64)?.matmul(&x.narrow(0, 0, 64)?)?;
    for y in [x.softmax(1)?, x.normalize(1, 1e-5)?, x.sum(1)?, x.sum(0)?, product] {
        assert_eq!(y.dims()[0], 1 << 16);
    }
    assert!(driver.n_launches() > 4);
    Ok(())
}
