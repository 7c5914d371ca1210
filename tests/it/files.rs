//! Files: against what NumPy, Pillow and safetensors wrote (`tests/fixtures/files.py`), there and back,
//! saving whole or not at all, and lying bytes, which must be errors that cost no memory (damaged ones: `damage.rs`).

use super::scripts::root;
use serde_json::Value as Json;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use tscript::internals::base::code::{FILE, FILE_FORMAT, FILE_KIND};
use tscript::internals::base::dtype::{DType, Scalar};
use tscript::internals::files::image::resized;
use tscript::internals::files::{Array, Kind, Named, Value, read, read_bytes, read_columns, write, write_bytes};

/// Counts what the current thread holds, so that a test can bound what reading a file takes.
struct Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // The counters of a thread that is ending are gone.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

// SAFETY: every call goes to `System` unchanged; the counters are plain thread-local cells that never allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the contract of `System` is the one that `GlobalAlloc` puts on our caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the contract of `System` is the one that `GlobalAlloc` puts on our caller.
        unsafe { System.dealloc(memory, layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the contract of `System` is the one that `GlobalAlloc` puts on our caller.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: the contract of `System` is the one that `GlobalAlloc` puts on our caller.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The result and the most memory that `work` held beyond what was held before.
pub fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.get();
    PEAK.set(before);
    let result = work();
    (result, (PEAK.get() - before) as usize)
}

pub fn fixtures() -> PathBuf {
    root().join("tests/fixtures/files")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn one(value: Value) -> Array {
    match value {
        Value::One(array) => array,
        Value::Named(named) => panic!("{} arrays instead of one", named.arrays.len()),
    }
}

fn named(value: Value) -> Named {
    match value {
        Value::Named(named) => named,
        Value::One(array) => panic!("one array {:?}", array.shape()),
    }
}

#[test]
fn reads_what_others_wrote() {
    let expected: Json = serde_json::from_str(&fs::read_to_string(fixtures().join("expected.json")).unwrap()).unwrap();
    let expected = expected.as_object().unwrap();
    assert!(expected.len() > 50);
    for (file, content) in expected {
        let got = read(&fixtures().join(file));
        if let Some(words) = content["error"].as_str() {
            let error = got.expect_err(file);
            assert_eq!(error.code, FILE_FORMAT, "{file}");
            assert!(error.message.contains(words) && error.message.contains(file), "{file}: {}", error.message);
            continue;
        }
        let arrays = match got.unwrap_or_else(|error| panic!("{file}: {}", error.message)) {
            Value::One(array) => vec![(String::new(), array)],
            Value::Named(named) => named.arrays,
        };
        let content = content.as_object().unwrap();
        assert_eq!(arrays.len(), content.len(), "{file}");
        for (name, array) in &arrays {
            same(file, &content[name], array);
        }
    }
}

fn same(file: &str, expected: &Json, array: &Array) {
    let shape: Vec<usize> = serde_json::from_value(expected["shape"].clone()).expect("a shape");
    assert_eq!(
        (array.dtype().name(), array.shape()),
        (expected["dtype"].as_str().expect("a text"), &shape[..]),
        "{file}"
    );
    let tolerance = if file.ends_with(".jpg") { 3.0 } else { 0.0 };
    for (i, text) in expected["values"].as_array().expect("a list").iter().enumerate() {
        let text = text.as_str().expect("a text");
        let equal = match array.get(i) {
            Scalar::Int(value) if tolerance == 0.0 => text.parse() == Ok(value),
            value => {
                let (got, want): (f64, f64) = (value.to_f64(), text.parse().expect("a number"));
                got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()) || (got - want).abs() <= tolerance
            }
        };
        assert!(equal, "{file}: element {i} is {}, not {text}", array.get(i));
    }
}

/// An array of every dtype with values that use all its bytes.
fn samples() -> Named {
    let arrays = DType::ALL.iter().flat_map(|dtype| {
        [vec![], vec![3], vec![2, 3], vec![0, 4], vec![2, 1, 3]].into_iter().map(move |shape: Vec<usize>| {
            let n: usize = shape.iter().product();
            let byte = |i: usize| if *dtype == DType::Bool { (i % 2) as u8 } else { (i * 37 + 11) as u8 };
            let data = (0..n * dtype.size_bytes()).map(byte).collect();
            (format!("{dtype}.{}.{n}", shape.len()), Array::new(*dtype, shape, data).expect("data of this shape"))
        })
    });
    Named::new(arrays.collect())
}

#[test]
fn every_dtype_there_and_back() {
    let mut all = samples();
    all.metadata = vec![("format".into(), "pt".into()), ("\"quoted\"\n".into(), "é🦀\\".into())];
    let whole = all.clone();
    // The format has no name for it.
    assert_eq!(write_bytes(Kind::Safetensors, &Value::Named(whole.clone())).unwrap_err().code, FILE_KIND);
    all.arrays.retain(|(_, array)| array.dtype() != DType::C128);
    let value = Value::Named(all.clone());
    let bytes = write_bytes(Kind::Safetensors, &value).unwrap();
    assert_eq!(read_bytes(Kind::Safetensors, &bytes).unwrap(), value);
    // The reference implementation agrees.
    let reference = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    for (name, array) in &all.arrays {
        let view = reference.tensor(name).unwrap();
        assert_eq!((view.shape(), view.data()), (array.shape(), array.bytes()));
        if array.dtype().size_bytes() == 8 && array.numel() > 0 {
            assert_eq!((view.data().as_ptr() as usize - bytes.as_ptr() as usize) % 8, 0, "{name} is not aligned");
        }
    }
    let mut all = whole;
    all.metadata.clear();
    all.arrays.retain(|(_, array)| array.dtype() != DType::BF16);
    for (name, array) in &all.arrays {
        let value = Value::One(array.clone());
        assert_eq!(read_bytes(Kind::Npy, &write_bytes(Kind::Npy, &value).unwrap()).unwrap(), value, "{name}");
    }
    let value = Value::Named(all);
    assert_eq!(read_bytes(Kind::Npz, &write_bytes(Kind::Npz, &value).unwrap()).unwrap(), value);
}

#[test]
fn images_there_and_back() {
    for shape in [vec![4, 6], vec![4, 6, 1], vec![4, 6, 2], vec![4, 6, 3], vec![4, 6, 4]] {
        let pixels: Vec<u8> = (0..shape.iter().product::<usize>()).map(|i| (i * 29) as u8).collect();
        let image = Value::One(Array::of(&pixels, &shape).unwrap());
        let back = one(read_bytes(Kind::Png, &write_bytes(Kind::Png, &image).unwrap()).unwrap());
        assert_eq!(back.bytes(), pixels);
        assert_eq!(back.shape(), if shape.len() == 2 { &[4, 6, 1] } else { &shape[..] });
    }
    let gray = Value::One(Array::of(&[128u8; 24], &[4, 6, 1]).unwrap());
    let back = one(read_bytes(Kind::Jpeg, &write_bytes(Kind::Jpeg, &gray).unwrap()).unwrap());
    assert_eq!((back.shape(), back.bytes()), (&[4, 6, 1][..], &[128; 24][..]));
    // Colors in waves, with sides that end within a block of eight.
    let (h, w) = (21, 37);
    let wave = |i: usize| ((i / 3 / w) as f64 * 0.3 + (i / 3 % w) as f64 * 0.2 + (i % 3) as f64).sin();
    let pixels: Vec<u8> = (0..h * w * 3).map(|i| (127.5 + 127.0 * wave(i)) as u8).collect();
    let image = Value::One(Array::of(&pixels, &[h, w, 3]).unwrap());
    let back = one(read_bytes(Kind::Jpeg, &write_bytes(Kind::Jpeg, &image).unwrap()).unwrap());
    assert_eq!(back.shape(), [h, w, 3]);
    let worst = back.bytes().iter().zip(&pixels).map(|(a, b)| a.abs_diff(*b)).max();
    // libjpeg at the same quality: 13.
    assert!(worst <= Some(14), "{worst:?}");
}

#[test]
fn images_are_not_resized_beyond_memory() {
    let wide = Array::of(&vec![0u8; 65535 * 4], &[1, 65535, 4]).unwrap();
    let said = resized(&wide, 1 << 15, 10).expect_err("34 GB on the way").message;
    assert!(said.contains("cannot be brought to 32768 by 10"), "{said}");
    assert_eq!(resized(&wide, 2, 10).unwrap().shape(), [2, 10, 4]);
}

fn csv(text: &str) -> tscript::internals::base::diag::Result<Array> {
    read_bytes(Kind::Csv, text.as_bytes()).map(one)
}

#[test]
fn tables() {
    let ints = csv("1,2\n-3,4\n").unwrap();
    assert_eq!((ints.shape(), ints.to_vec::<i64>()), (&[2, 2][..], Some(vec![1, 2, -3, 4])));
    let floats = csv("\u{feff}a, b\r\n1, 2.5\r\n\r\n\"-3\",nan\r\n").unwrap();
    assert_eq!(floats.shape(), [2, 2]);
    let values = floats.to_vec::<f32>().unwrap();
    assert_eq!(values[..3], [1.0, 2.5, -3.0]);
    assert!(values[3].is_nan());
    assert_eq!(csv("x,y\n").unwrap().shape(), [0, 2]);
    assert_eq!(csv("7").unwrap().shape(), [1, 1]);
    for (text, words) in [
        ("", "the table is empty"),
        ("1,2\n3\n", "line 2 has 1 cells, and the first has 2"),
        ("1,2\n3,\n", "line 2, column 2: the cell is empty"),
        ("a,b\n1,2\n\n3,x y\n", "line 4, column 2 (`b`): `x y` is not a number"),
        ("a,b\r\n1,2\r\n\r\n\r\n3,z\r\n", "line 5, column 2 (`b`): `z` is not a number"),
        ("1,2\r\n3,4\r\n5,?\r\n", "line 3, column 2: `?` is not a number"),
        ("\u{feff}1,2\n3\n", "line 2 has 1 cells, and the first has 2"),
        ("5.1,setosa\n4.9,setosa\n", "line 1, column 2: `setosa` is not a number"),
        ("5.1,NA,1.4\n4.9,3.0,1.4\n", "line 1, column 2: `NA` is not a number"),
        ("a;b\n1;2\n", "line 2, column 1 (`a;b`): `1;2` is not a number"),
        ("1;2\n", "line 1, column 1: `1;2` is not a number"),
        ("true,false\n", "line 1, column 1: `true` is not a number"),
        ("\"a,1\n2,3\n", "line 1: a quote is never closed"),
        ("a,b\n1,2\n3,\"4", "line 3: a quote is never closed"),
    ] {
        let error = csv(text).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (FILE_FORMAT, words));
    }
    assert_eq!(csv("5\" pipe,\"\"\"\"\n").unwrap().shape(), [0, 2]);
    let folder = folder();
    let path = folder.path().join("t.csv");
    fs::write(&path, "x,label\n0.5,1\n1,2\n").unwrap();
    let columns = named(read_columns(&path).unwrap());
    assert_eq!(columns.get("x").unwrap().to_vec::<f32>(), Some(vec![0.5, 1.0]));
    assert_eq!(columns.get("label").unwrap().to_vec::<i64>(), Some(vec![1, 2]));
    write(&path, &Value::Named(columns.clone())).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "x,label\n0.5,1\n1.0,2\n");
    assert_eq!(named(read_columns(&path).unwrap()), columns);
    fs::write(&path, "city,2020\n1,2\n").unwrap();
    assert_eq!(named(read_columns(&path).unwrap()).get("2020").unwrap().to_vec::<i64>(), Some(vec![2]));
    let exact = [0.1f32, f32::MAX, f32::MIN_POSITIVE, -1.0e-45, f32::INFINITY];
    let column = Value::One(Array::of(&exact, &[5]).unwrap());
    let back = one(read_bytes(Kind::Csv, &write_bytes(Kind::Csv, &column).unwrap()).unwrap());
    assert_eq!((back.shape(), back.to_vec::<f32>().unwrap()), (&[5, 1][..], exact.to_vec()));
}

/// The dtype that is asked for, or the default one, decides how the text of a table is read.
#[test]
fn tables_are_read_as_what_they_become() {
    let folder = folder();
    let path = folder.path().join("t.csv");
    fs::write(&path, "a,b\n16777217,0.1\n3,4.5\n").unwrap();
    let read = |text: &str| {
        let mut session = tscript::Session::builder().all_files().build().expect("a session");
        let text = text.replace("PATH", &path.display().to_string());
        session.eval::<String>(&text).unwrap_or_else(|error| panic!("{text}: {error:#}"))
    };
    let exact = "[[16777217.0, 0.1], [3.0, 4.5]]";
    assert_eq!(read("repr(load(\"PATH\", #{dtype: \"f64\"}).tolist())"), exact);
    assert_eq!(read("set_default_dtype(\"f64\"); repr(load(\"PATH\").tolist())"), exact);
    assert_eq!(read("repr(load(\"PATH\", #{dtype: \"i64\"}).tolist())"), "[[16777217, 0], [3, 4]]");
    assert_eq!(read("repr(load(\"PATH\", #{dtype: \"f64\", columns: true}).b.tolist())"), "[0.1, 4.5]");
    assert_eq!(read("let t = load(\"PATH\"); repr([t.dtype, t[0, 0].item()])"), "[f32, 16777216.0]");
}

#[test]
fn what_a_format_cannot_hold() {
    let single = |shape: &[usize]| Value::One(Array::of(&vec![0u8; shape.iter().product()], shape).unwrap());
    let floats = Value::One(Array::of(&[0.0f32; 4], &[2, 2]).unwrap());
    let bf16 = Value::One(Array::new(DType::BF16, vec![1], vec![0; 2]).unwrap());
    let twice = Value::Named(Named::new(vec![
        ("a".into(), Array::of(&[1u8], &[1]).unwrap()),
        ("a".into(), Array::of(&[1u8], &[1]).unwrap()),
    ]));
    for (kind, value, words) in [
        (Kind::Npy, &bf16, "no dtype for bf16"),
        (Kind::Npy, &twice, "a single tensor"),
        (Kind::Npz, &twice, "the name `a`"),
        (Kind::Safetensors, &twice, "the name `a`"),
        (Kind::Safetensors, &floats, "named tensors"),
        (Kind::Csv, &single(&[1, 2, 3]), "[1, 2, 3]"),
        (Kind::Png, &floats, "dtype u8"),
        (Kind::Png, &single(&[3, 8, 8]), "1 to 4 channels"),
        (Kind::Png, &single(&[0, 8, 3]), "[0, 8, 3]"),
        (Kind::Jpeg, &single(&[8, 8, 4]), "no alpha"),
    ] {
        let error = write_bytes(kind, value).unwrap_err();
        assert_eq!(error.code, FILE_KIND);
        assert!(error.message.contains(words), "{}", error.message);
    }
    let error = read(Path::new("x.txt")).unwrap_err();
    assert_eq!(error.code, FILE_KIND);
    assert!(error.help.unwrap().contains("`.safetensors`"));
    assert_eq!(read(Path::new("model")).unwrap_err().code, FILE_KIND);
}

#[test]
fn saving_is_whole_or_not_at_all() {
    let folder = folder();
    let path = folder.path().join("x.npy");
    let value = Value::One(Array::of(&[1i64, 2], &[2]).unwrap());
    write(&path, &value).unwrap();
    assert_eq!(read(&path).unwrap(), value);
    let failing = Value::One(Array::new(DType::BF16, vec![1], vec![0; 2]).unwrap());
    let error = write(&path, &failing).unwrap_err();
    assert!(error.message.contains("x.npy"), "{}", error.message);
    assert_eq!(read(&path).unwrap(), value);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a temporary file was left");
    for (path, words) in [
        (folder.path().join("none/x.npy"), "cannot be written: there is no folder `"),
        (folder.path().join("folder.npy"), "this is a folder"),
    ] {
        fs::create_dir_all(folder.path().join("folder.npy")).unwrap();
        let error = write(&path, &value).unwrap_err();
        assert_eq!(error.code, FILE);
        assert!(error.message.contains(words), "{}", error.message);
    }
    assert_eq!(read(&folder.path().join("folder.npy")).unwrap_err().code, FILE);
    let error = read(&folder.path().join("missing.npy")).unwrap_err();
    assert!(error.code == FILE && error.message.contains("missing.npy`: cannot be read: "), "{}", error.message);
}

#[cfg(unix)]
#[test]
fn saving_keeps_permissions_and_follows_links() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = folder();
    let (path, link) = (folder.path().join("x.npy"), folder.path().join("link.npy"));
    let value = |n: i64| Value::One(Array::of(&[n], &[1]).unwrap());
    write(&path, &value(1)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&path, &link).unwrap();
    write(&link, &value(2)).unwrap();
    assert_eq!(read(&path).unwrap(), value(2));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    assert!(write(&path, &value(3)).unwrap_err().message.contains("read-only"));
    assert_eq!(read(&path).unwrap(), value(2));
}

fn refuse(kind: Kind, bytes: &[u8], words: &str) {
    let (result, peak) = peak(|| read_bytes(kind, bytes));
    let error = result.expect_err(words);
    assert!(error.message.contains(words), "`{}` does not say `{words}`", error.message);
    assert!(peak < (1 << 20), "refusing took {peak} bytes: {}", error.message);
}

#[test]
fn lying_safetensors() {
    let file = |header: &str, data: usize| {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.resize(bytes.len() + data, 0);
        bytes
    };
    let entry = |name: &str, shape: &str, begin: u64, end: u64| {
        format!(r#""{name}":{{"dtype":"F32","shape":{shape},"data_offsets":[{begin},{end}]}}"#)
    };
    let two = |a: String, b: String| format!("{{{a},{b}}}");
    refuse(Kind::Safetensors, &[0xFF; 16], "claims 18446744073709551615 bytes");
    refuse(Kind::Safetensors, &99_000_000u64.to_le_bytes(), "the header needs 99000000 bytes from byte 8");
    let lie = entry("a", "[1099511627776]", 0, 4398046511104);
    refuse(Kind::Safetensors, &file(&format!("{{{lie}}}"), 8), "4398046511104 bytes of data, and the file has 8");
    let lie = entry("a", "[4294967296,4294967296,4294967296]", 0, 8);
    refuse(Kind::Safetensors, &file(&format!("{{{lie}}}"), 8), "does not fit its data bytes 0 to 8");
    let lie = two(entry("a", "[2]", 0, 8), entry("b", "[2]", 4, 12));
    refuse(Kind::Safetensors, &file(&lie, 12), "tensor `b` overlaps");
    let lie = two(entry("a", "[2]", 0, 8), entry("b", "[2]", 12, 20));
    refuse(Kind::Safetensors, &file(&lie, 20), "tensor `b` leaves a hole");
    let lie = two(entry("a", "[2]", 0, 8), entry("a", "[2]", 8, 16));
    refuse(Kind::Safetensors, &file(&lie, 16), "`a` occurs twice");
    refuse(Kind::Safetensors, &file(&format!("{{{}}}", entry("a", "[1]", 0, 4)), 9), "the file has 9");
    refuse(Kind::Safetensors, &file(&"[".repeat(100_000), 0), "byte 8: `{` is missing");
    refuse(Kind::Safetensors, &file(r#"{"a":{"dtype":"F4","shape":[],"data_offsets":[0,0]}}"#, 0), "dtype `F4`");
    let lie = r#"{"a":{"dtype":"F32","shape":[1],"shape":[0],"data_offsets":[0,0]}}"#;
    refuse(Kind::Safetensors, &file(lie, 0), "tensor `a` has a key twice");
    refuse(Kind::Safetensors, &file(r#"{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,0]}}"#, 0), "byte 37");
}

fn npy_file(dict: &str, data: usize) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&(dict.len() as u16).to_le_bytes());
    bytes.extend_from_slice(dict.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

#[test]
fn sizes_beside_a_zero_may_be_anything() {
    for shape in ["(0, 3000000000000001, 3000000, 7)", "(3000000000000001, 3000000, 0, 7)"] {
        let bytes = npy_file(&format!("{{'descr': '|i1', 'fortran_order': True, 'shape': {shape}, }}"), 0);
        match read_bytes(Kind::Npy, &bytes) {
            Ok(value) => {
                assert_eq!(write_bytes(Kind::Npy, &value).and_then(|bytes| read_bytes(Kind::Npy, &bytes)), Ok(value))
            }
            Err(error) => assert_eq!(error.code, FILE_FORMAT),
        }
    }
}

#[test]
fn lying_npy() {
    let dict = |shape: &str| format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    refuse(Kind::Npy, &npy_file(&dict("(1000000000000,)"), 4), "needs 4000000000000 bytes");
    refuse(Kind::Npy, &npy_file(&dict("(18446744073709551615, 3)"), 4), "beyond all memory");
    refuse(Kind::Npy, &npy_file(&dict("(99999999999999999999,)"), 4), "a whole number belongs here");
    refuse(Kind::Npy, &npy_file(&dict(&format!("({})", "1, ".repeat(40))), 4), "40 dims");
    refuse(Kind::Npy, &npy_file(&dict("(1,)"), 5), "1 bytes follow the array, from byte");
    refuse(Kind::Npy, &npy_file(&dict("(-1,)"), 4), "a whole number belongs here");
    refuse(Kind::Npy, &npy_file("{'descr': '<f4'}", 4), "lacks one of");
    let mut long = b"\x93NUMPY\x02\x00".to_vec();
    long.extend_from_slice(&u32::MAX.to_le_bytes());
    refuse(Kind::Npy, &long, "claims 4294967295 bytes");
    refuse(Kind::Npy, b"PK\x03\x04aaaaaaaa", "missing at byte 0");
}

#[test]
fn lying_npz() {
    let zeros = Array::of(&[0u8; 100], &[100]).unwrap();
    let whole = write_bytes(Kind::Npz, &Value::Named(Named::new(vec![("a".into(), zeros)]))).unwrap();
    let find = |bytes: &[u8], magic: &[u8]| bytes.windows(4).position(|window| window == magic).unwrap();
    let central = find(&whole, b"PK\x01\x02");
    // A stored entry that claims 4 GB.
    let mut lie = whole.clone();
    lie[central + 24..central + 28].copy_from_slice(&0xFFFF_FFFEu32.to_le_bytes());
    refuse(Kind::Npz, &lie, "");
    // A damaged element: the checksum tells.
    let mut lie = whole.clone();
    lie[central - 5] ^= 1;
    refuse(Kind::Npz, &lie, "damaged");
    // The array's header claims more than its entry has.
    let mut lie = whole.clone();
    let digits = lie.windows(5).position(|window| window == b"(100,").unwrap();
    lie[digits..digits + 5].copy_from_slice(b"(999,");
    refuse(Kind::Npz, &lie, "array `a`");
    // Many entries over the same bytes.
    let end = find(&whole, b"PK\x05\x06");
    let entry = whole[central..end].to_vec();
    let mut lie = whole[..central].to_vec();
    for letter in b'a'..=b'z' {
        let mut copy = entry.clone();
        copy[46] = letter;
        lie.extend_from_slice(&copy);
    }
    let mut tail = whole[end..].to_vec();
    tail[8..12].copy_from_slice(&[26, 0, 26, 0]);
    tail[12..16].copy_from_slice(&(26 * entry.len() as u32).to_le_bytes());
    lie.extend_from_slice(&tail);
    refuse(Kind::Npz, &lie, "claim more bytes than the file has");
    refuse(Kind::Npz, b"PK\x05\x06", "damaged");
}

#[test]
fn bombs_of_zeros() {
    let size = 64 << 20;
    let bomb = |claim: usize| {
        let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let deflated = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        archive.start_file("a.npy", deflated).unwrap();
        let dict = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({claim},), }}");
        archive.write_all(&npy_file(&dict, 0)).unwrap();
        archive.write_all(&vec![0; size]).unwrap();
        archive.finish().unwrap().into_inner()
    };
    // Honest: reads, and costs what it holds.
    let whole = bomb(size);
    let (result, peak) = peak(|| read_bytes(Kind::Npz, &whole));
    assert_eq!(named(result.unwrap()).get("a").unwrap().numel(), size);
    assert!(peak < 3 * size, "{peak}");
    // The array is smaller than what it expands to.
    refuse(Kind::Npz, &bomb(4), "bytes follow the array");
    // The directory tells a size below what it expands to, and one above what it can.
    let central = whole.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
    for (claim, words) in [(70u32, "array `a`"), (u32::MAX - 1, "cannot hold")] {
        let mut lie = whole.clone();
        lie[central + 24..central + 28].copy_from_slice(&claim.to_le_bytes());
        refuse(Kind::Npz, &lie, words);
    }
}

#[test]
fn lying_png() {
    let pixels = Value::One(Array::of(&[7u8; 12], &[2, 2, 3]).unwrap());
    let whole = write_bytes(Kind::Png, &pixels).unwrap();
    for (width, height) in [(0x7FFF_FFFFu32, 0x7FFF_FFFFu32), (100_000, 100_000), (1, 0x7FFF_FFFF), (0, 1)] {
        let mut lie = whole.clone();
        lie[16..20].copy_from_slice(&width.to_be_bytes());
        lie[20..24].copy_from_slice(&height.to_be_bytes());
        let sum = crc32(&lie[12..29]).to_be_bytes();
        lie[29..33].copy_from_slice(&sum);
        refuse(Kind::Png, &lie, "image");
    }
}

#[test]
fn a_palette_that_ends_within_a_color() {
    let whole = fs::read(fixtures().join("palette.png")).unwrap();
    let at = whole.windows(4).position(|window| window == b"PLTE").unwrap();
    let old = u32::from_be_bytes([whole[at - 4], whole[at - 3], whole[at - 2], whole[at - 1]]) as usize;
    let mut lie = whole[..at - 4].to_vec();
    lie.extend_from_slice(&(old as u32 - 1).to_be_bytes());
    lie.extend_from_slice(&whole[at..at + 4 + old - 1]);
    lie.extend_from_slice(&crc32(&whole[at..at + 4 + old - 1]).to_be_bytes());
    lie.extend_from_slice(&whole[at + 4 + old + 4..]);
    refuse(Kind::Png, &lie, "palette at byte");
}

/// PNG's checksum, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ *byte as u32, |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[test]
fn digits_load() {
    let path = root().join("scripts/data/digits.npz");
    let digits = named(read(&path).unwrap());
    let (x, y) = (digits.get("x").unwrap(), digits.get("y").unwrap());
    assert_eq!((x.dtype(), x.shape()), (DType::U8, &[1797, 8, 8][..]));
    assert_eq!((y.dtype(), y.shape()), (DType::I64, &[1797][..]));
    assert_eq!(y.to_vec::<i64>().unwrap().iter().sum::<i64>(), 8070);
    assert_eq!(x.bytes().iter().max(), Some(&16));
}

/// Opened in the usual way it would be waited for until somebody writes.
#[cfg(unix)]
#[test]
fn a_pipe_without_a_writer_is_refused_at_once() {
    let folder = folder();
    let path = folder.path().join("pipe.npy");
    let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo runs");
    assert!(made.success());
    let error = read(&path).map(drop).expect_err("refused");
    assert!(error.message.contains("not a regular file"), "{}", error.message);
}
