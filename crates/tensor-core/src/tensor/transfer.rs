//! Between devices, to the host, and between dtypes.

use std::sync::OnceLock;

use crate::expr::build;
use crate::{DType, Device, Element, Error, Expr, HostData, HostView, Op, Result, Tensor, stats};

impl Tensor {
    /// The elements on the host, row-major, in the tensor's own dtype. Waits for the device.
    ///
    /// # Errors
    /// What the device reports.
    pub fn to_host(&self) -> Result<HostData> {
        let x = self.stop_gradient();
        x.force()?;
        let data = x.place().backend().download(&x)?;
        stats::count_download(data.len() * data.dtype().size_bytes());
        Ok(data)
    }

    /// The elements on the host, row-major. Waits for the device.
    ///
    /// # Errors
    /// If `T` is not the tensor's dtype (nothing is converted silently), and what the device reports.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.check_type::<T>("to_vec")?;
        Ok(T::from_host(self.to_host()?).expect("invariant: a download has the tensor's dtype"))
    }

    /// The only element. Waits for the device.
    ///
    /// # Errors
    /// If there is not exactly one element, `T` is not the tensor's dtype, and what the device reports.
    pub fn item<T: Element>(&self) -> Result<T> {
        self.check_type::<T>("item")?;
        if self.len() != 1 {
            return Err(Error::shape("item", format!("needs exactly one element: input {}", self.shape())));
        }
        Ok(self.to_vec::<T>()?[0])
    }

    fn check_type<T: Element>(&self, op: &'static str) -> Result<()> {
        if T::DTYPE == self.dtype() {
            return Ok(());
        }
        Err(Error::dtype(
            op,
            format!(
                "the type asked for is not the tensor's: asked {}, input {}; cast it with .cast(..)",
                T::DTYPE,
                self.dtype()
            ),
        ))
    }

    /// This tensor on `device`: itself where it already is there, else a row-major copy. Waits when it moves.
    ///
    /// # Errors
    /// If it is part of a gradient and would move to another device, and what the devices report.
    pub fn to(&self, device: &Device) -> Result<Tensor> {
        if self.place().physical() == device.physical() { Ok(self.clone()) } else { self.moved("to", device) }
    }

    /// A row-major copy on `device`, wherever this tensor is.
    ///
    /// # Errors
    /// If it is part of a gradient and would move to another device, and what the devices report.
    pub fn copy_to(&self, device: &Device) -> Result<Tensor> {
        if self.place().physical() == device.physical() {
            stats::count_copy(self.len() * self.dtype().size_bytes());
            return self.run(&Op::Copy);
        }
        self.moved("copy_to", device)
    }

    fn moved(&self, op: &'static str, device: &Device) -> Result<Tensor> {
        if self.place().backend().level() > 0 {
            return Err(Error::gradient(
                op,
                format!(
                    "a tensor inside a gradient cannot move to another device: input {}, device {}; move the model and the data before",
                    self.place().physical(),
                    device.physical()
                ),
            ));
        }
        self.force()?;
        let data = self.place().backend().download(self)?;
        let shape = self.shape();
        let device = device.physical().clone();
        let storage = device.backend().upload(HostView { shape, data: data.as_slice() })?;
        stats::count_copy(data.len() * data.dtype().size_bytes());
        stats::count_wait();
        Ok(Tensor::from_storage(storage, self.meta(), device))
    }

    /// This tensor without its history: the plain value below every interpreter, a constant for gradients.
    pub fn stop_gradient(&self) -> Tensor {
        let mut x = self.clone();
        while let Some(lower) = x.place().backend().lower(&x) {
            x = lower;
        }
        x
    }

    /// This tensor with elements of another dtype; itself where it has that already.
    ///
    /// Float to integer truncates and saturates, NaN gives 0; to bool is `x ≠ 0`; rounding is to nearest even.
    ///
    /// # Errors
    /// If the device has no such dtype.
    pub fn cast(&self, dtype: DType) -> Result<Tensor> {
        static CASTS: [OnceLock<Expr>; DType::ALL.len()] = [const { OnceLock::new() }; DType::ALL.len()];
        if dtype == self.dtype() {
            return Ok(self.clone());
        }
        let expr = CASTS[dtype as usize].get_or_init(|| build(|[x]| x.cast(dtype)));
        self.apply("cast", expr, &[])
    }
}
