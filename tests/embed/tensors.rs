//! Tensors between a program and its sessions: without a copy where the layout allows, with owners that let go.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tscript::{DType, Dlpack, Session, Tensor};

fn session() -> Session {
    Session::builder().build().expect("a session starts")
}

#[test]
fn a_vector_is_worked_on_where_it_is() {
    let elements: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let address = elements.as_ptr();
    let mut session = session();
    session.run_str("f", "fn inside(x) { x.add_(1); x } fn view(x) { x.reshape([10, 100])[3] }").unwrap();
    let x: Tensor = session.call("inside", (Tensor::from_vec(elements, &[1000]).unwrap(),)).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap()[..3], [1.0, 2.0, 3.0]);
    let raw = Raw::of(x.to_dlpack().unwrap());
    assert_eq!(raw.data(), address.cast(), "the very memory");
    let row: Tensor = session.call("view", (x.clone(),)).unwrap();
    let row = Raw::of(row.to_dlpack().unwrap());
    assert_eq!(row.data(), address.wrapping_add(300).cast(), "a view of it");
    assert_eq!((row.shape(), row.strides()), (vec![100], vec![1]));
    drop(session);
    assert_eq!(x.to_vec::<f32>().unwrap()[999], 1000.0);

    // With a second handle, the program's elements stay what they were.
    let shared = Tensor::from_slice(&[1i64, 2], &[2]).unwrap();
    let mut session = self::session();
    session.set("x", shared.clone()).unwrap();
    session.run_str("change", "x.mul_(10);").unwrap();
    assert_eq!(shared.to_vec::<i64>().unwrap(), [1, 2]);
    assert_eq!(session.get::<Tensor>("x").unwrap().to_vec::<i64>().unwrap(), [10, 20]);
}

#[test]
fn sizes_are_checked_and_odd_ones_work() {
    assert_eq!(Tensor::from_slice(&[1.0f32; 3], &[2, 2]).unwrap_err().code(), "E0201");
    assert_eq!(Tensor::from_bytes(DType::F32, &[2], vec![0; 7]).unwrap_err().code(), "E0201");
    assert_eq!(Tensor::from_vec(Vec::<f32>::new(), &[usize::MAX, 2]).unwrap_err().code(), "E0210");
    let mut session = session();
    session.run_str("f", "fn double(x) { x + x }").unwrap();
    let empty: Tensor = session.call("double", (Tensor::from_vec(Vec::<f64>::new(), &[0, 3]).unwrap(),)).unwrap();
    assert_eq!((empty.shape(), empty.to_vec::<f64>().unwrap()), (vec![0, 3], vec![]));
    let scalar: Tensor = session.call("double", (Tensor::from_slice(&[4u8], &[]).unwrap(),)).unwrap();
    assert_eq!((scalar.shape(), scalar.to_vec::<u8>().unwrap()), (vec![], vec![8]));
    let bytes = [1.5f64.to_le_bytes(), 2.5f64.to_le_bytes()].concat();
    let x = Tensor::from_bytes(DType::F64, &[2], bytes.clone()).unwrap();
    assert_eq!(x.to_bytes().unwrap(), bytes);
    assert_eq!(x.to_vec::<f32>().unwrap_err().code(), "E0202");
    assert_eq!(x.device(), "cpu");
}

/// The parts of a `DLManagedTensor`, as any other library sees them: DLPack's header, read word by word.
struct Raw(*mut c_void);

#[repr(C)]
struct Managed {
    data: *mut c_void,
    kind: i32,
    id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    offset: u64,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

impl Raw {
    fn of(tensor: Dlpack) -> Raw {
        Raw(tensor.into_raw())
    }

    fn managed(&self) -> &Managed {
        // SAFETY: `into_raw` gives a DLManagedTensor, which lives until its deleter is called.
        unsafe { &*self.0.cast() }
    }

    fn data(&self) -> *const c_void {
        self.managed().data.cast_const()
    }

    fn list(&self, at: *mut i64) -> Vec<i64> {
        // SAFETY: `ndim` numbers lie there.
        unsafe { std::slice::from_raw_parts(at, self.managed().ndim as usize) }.to_vec()
    }

    fn shape(&self) -> Vec<i64> {
        self.list(self.managed().shape)
    }

    fn strides(&self) -> Vec<i64> {
        self.list(self.managed().strides)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        if let Some(deleter) = self.managed().deleter {
            // SAFETY: called once, as whoever takes a capsule does.
            unsafe { deleter(self.0.cast()) };
        }
    }
}

static DELETED: AtomicUsize = AtomicUsize::new(0);

/// A tensor of another library: `[2, 3]` of `f32`, stored by columns, with a deleter that counts.
fn foreign() -> *mut c_void {
    struct Owner {
        elements: Vec<f32>,
        shape: [i64; 2],
        strides: [i64; 2],
    }
    unsafe extern "C" fn delete(managed: *mut Managed) {
        // SAFETY: both were boxed below.
        unsafe {
            drop(Box::from_raw((*managed).context.cast::<Owner>()));
            drop(Box::from_raw(managed));
        }
        DELETED.fetch_add(1, Ordering::SeqCst);
    }
    let owner = Box::leak(Box::new(Owner {
        elements: vec![99.0, 1.0, 4.0, 2.0, 5.0, 3.0, 6.0],
        shape: [2, 3],
        strides: [1, 2],
    }));
    let managed = Managed {
        data: owner.elements.as_mut_ptr().cast(),
        kind: 1,
        id: 0,
        ndim: 2,
        code: 2,
        bits: 32,
        lanes: 1,
        shape: owner.shape.as_mut_ptr(),
        strides: owner.strides.as_mut_ptr(),
        offset: 4,
        context: (&raw mut *owner).cast(),
        deleter: Some(delete),
    };
    Box::into_raw(Box::new(managed)).cast()
}

#[test]
fn dlpack_comes_in_without_a_copy_and_its_deleter_runs_once() {
    let raw = foreign();
    // SAFETY: `foreign` makes a valid tensor.
    let data = unsafe { (*raw.cast::<Managed>()).data };
    // SAFETY: and nobody else has it.
    let tensor = unsafe { Dlpack::from_raw(raw) }.unwrap();
    let x = Tensor::from_dlpack(tensor).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let mut session = session();
    session.set("x", x).unwrap();
    session.run_str("f", "let y = x @ x.t(); x.add_(10);").unwrap();
    assert_eq!(session.get::<Tensor>("y").unwrap().to_vec::<f32>().unwrap(), [14.0, 32.0, 32.0, 77.0]);
    let out = Raw::of(session.get::<Tensor>("x").unwrap().to_dlpack().unwrap());
    assert_eq!(out.data(), data.wrapping_byte_add(4).cast_const(), "no copy on the way in or out");
    assert_eq!((out.shape(), out.strides()), (vec![2, 3], vec![1, 2]));
    // SAFETY: six elements lie there.
    let elements = unsafe { std::slice::from_raw_parts(out.data().cast::<f32>(), 6) };
    assert_eq!(elements, [11.0, 14.0, 12.0, 15.0, 13.0, 16.0]);
    drop(session);
    assert_eq!(DELETED.load(Ordering::SeqCst), 0, "the capsule outside keeps it");
    drop(out);
    assert_eq!(DELETED.load(Ordering::SeqCst), 1);
    // SAFETY: `foreign` makes a valid tensor that nobody else takes.
    drop(unsafe { Dlpack::from_raw(foreign()) }.unwrap());
    assert_eq!(DELETED.load(Ordering::SeqCst), 2, "also where nobody makes a tensor of it");
    let odd = foreign();
    // SAFETY: nobody else uses the tensor yet.
    unsafe { (*odd.cast::<Managed>()).kind = 2 };
    // SAFETY: the tensor is valid but for its kind, and nobody else takes it.
    assert!(unsafe { Dlpack::from_raw(odd) }.unwrap_err().contains("host memory"));
    assert_eq!(DELETED.load(Ordering::SeqCst), 3, "and where it is refused");
}

#[test]
fn dlpack_goes_round_with_every_dtype() {
    let mut session = session();
    for dtype in ["f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool"] {
        let x: Tensor = session.eval(&format!("tensor([[1, 0, 1], [0, 1, 1]]).to(\"{dtype}\").t()")).unwrap();
        let plain = x.to_dlpack().unwrap().into_raw();
        let versioned = x.to_dlpack().unwrap().into_raw_versioned();
        // SAFETY: each is of its kind, and nobody else takes it.
        let both = unsafe { [Dlpack::from_raw(plain).unwrap(), Dlpack::from_raw_versioned(versioned).unwrap()] };
        for tensor in both {
            let y = Tensor::from_dlpack(tensor).unwrap();
            assert_eq!((y.dtype(), y.shape()), (x.dtype(), vec![3, 2]), "{dtype}");
            assert_eq!(y.to_bytes().unwrap(), x.to_bytes().unwrap(), "{dtype}");
        }
    }
    // SAFETY: null is refused.
    assert!(unsafe { Dlpack::from_raw(std::ptr::null_mut()) }.is_err());
    let gpu =
        Session::builder().simulate_gpus(1).build().unwrap().eval::<Tensor>("ones([2], #{device: \"cuda\"})").unwrap();
    assert_eq!(gpu.to_dlpack().unwrap_err().code(), "E0301");
}

#[cfg(feature = "ndarray")]
#[test]
fn ndarray_arrays_become_tensors_and_come_back() {
    use ndarray::{Array2, ArrayD, arr0, array, s};
    let elements: Array2<f32> = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
    let address = elements.as_ptr();
    let mut session = session();
    session.set("x", Tensor::from_ndarray(elements.reversed_axes()).unwrap()).unwrap();
    session.run_str("f", "x.mul_(2);").unwrap();
    let x: Tensor = session.get("x").unwrap();
    assert_eq!(Raw::of(x.to_dlpack().unwrap()).data(), address.cast(), "transposed, and not copied");
    let back: ArrayD<f32> = x.to_ndarray().unwrap();
    assert_eq!(back, array![[2.0, 8.0], [4.0, 10.0], [6.0, 12.0]].into_dyn());
    let backwards = array![1i64, 2, 3, 4].slice_move(s![..;-2]);
    assert_eq!(Tensor::from_ndarray(backwards).unwrap().to_vec::<i64>().unwrap(), [4, 2]);
    assert_eq!(Tensor::from_ndarray(arr0(1.5f64)).unwrap().to_vec::<f64>().unwrap(), [1.5]);
    assert_eq!(x.to_ndarray::<f64>().unwrap_err().code(), "E0202");
}

/// Memory that was lent comes back when the last handle goes, on whichever side that is.
#[test]
fn lent_memory_comes_back() {
    let kept = Arc::new(());
    struct Kept(#[expect(dead_code, reason = "only dropped")] Arc<()>);
    let mut session = Session::builder()
        .function("make", {
            let kept = kept.clone();
            move || {
                let _kept = Kept(kept.clone());
                Tensor::from_vec(vec![0u8; 1 << 20], &[1 << 20])
            }
        })
        .build()
        .unwrap();
    for _ in 0..200 {
        session.eval::<i64>("let x = make(); x.sum().item()").unwrap();
    }
    assert_eq!(session.eval::<i64>("memory_allocated(\"cpu\")").unwrap_or(0), 0, "lent memory is in no statistics");
    drop(session);
    assert_eq!(Arc::strong_count(&kept), 1);
}
