//! Kernels: parameters, the cache on disk, compiling.

use super::*;
use tscript::internals::device::cuda::kernel_cache::Cubins;
use tscript::internals::device::cuda::nvrtc::compile;
use tscript::internals::device::cuda::{KernelError, Kernels};

/// Needs no GPU, only NVRTC.
#[test]
fn the_kernels_of_these_tests_compile() {
    match compile(&text(), (9, 0)) {
        Ok(_) => {}
        Err(KernelError::Compiler { .. }) => eprintln!("NVRTC is not installed: nothing was compiled"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn kernels_take_their_parameters_in_both_ways() {
    let Some((_alone, context)) = gpu() else { return };
    let stream = Stream::new(context, 0).expect("a stream");
    let kernels = context.kernels();
    let add = kernels.function(&text(), "add").expect("a kernel");
    assert_eq!(add.parameters(), [(0, 8), (8, 8), (16, 8), (24, 4)]);
    assert!(std::ptr::eq(add, kernels.known(text().key, "add").expect("the same")));
    let n = 100_003u32;
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let y: Vec<f32> = (0..n).map(|i| (i % 7) as f32).collect();
    let (x, y) = (Buffer::of(&stream, &x), Buffer::of(&stream, &y));
    let z = Buffer::new(context, x.bytes);
    let shape = Shape::line(n.div_ceil(256), 256);
    let check = |z: &Buffer| {
        for (i, value) in z.read::<f32>(&stream).into_iter().enumerate() {
            assert_eq!(value, 2.0 * i as f32 + (i % 7) as f32);
        }
        stream.fill(z.address, 0xff, z.bytes).expect("a fill");
    };
    let (mut a, mut b, mut c, mut d) = (z.address, x.address, y.address, n);
    let mut parameters = [pointer(&mut a), pointer(&mut b), pointer(&mut c), pointer(&mut d)];
    // SAFETY: the parameters are those of the kernel.
    unsafe { stream.launch(add, &shape, &mut parameters) }.expect("a launch");
    check(&z);
    let addresses = [z.address.to_ne_bytes(), x.address.to_ne_bytes(), y.address.to_ne_bytes()];
    let bytes = packed(&[&addresses[0], &addresses[1], &addresses[2], &n.to_ne_bytes()]);
    stream.launch_packed(add, &shape, &bytes).expect("a launch");
    check(&z);
    // SAFETY: it is refused before a parameter is read.
    let refused = unsafe { stream.launch(add, &shape, &mut parameters[..3]) };
    assert!(refused.is_err() && stream.launch_packed(add, &shape, &bytes[..24]).is_err());
    assert!(matches!(kernels.function(&text(), "nope"), Err(KernelError::Entry { .. })));
    let nothing = kernels.function(&text(), "nothing").expect("a kernel");
    stream.launch_packed(nothing, &Shape::line(1, 1), &[]).expect("no parameters");
    let wide = Shape::line(1, 4096);
    let error = stream.launch_packed(nothing, &wide, &[]).expect_err("blocks have 1024 threads");
    assert!(!error.is_dead(), "{error}");

    let shared = kernels.function(&text(), "shared").expect("a kernel");
    let words = context.facts().shared_bytes_per_block / 4;
    let shape = Shape { shared_bytes: words * 4, ..Shape::line(1, 256) };
    let bytes = packed(&[&z.address.to_ne_bytes(), &words.to_ne_bytes()]);
    stream.launch_packed(shared, &shape, &bytes).expect("all of the shared memory");
    assert_eq!(z.read::<f32>(&stream)[0], (words - 1) as f32);
    assert!(shared.blocks_per_multiprocessor(256, words * 4).expect("a number") >= 1);
}

#[test]
fn compiled_kernels_are_cached_and_repaired() {
    let Some((_alone, context)) = gpu() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let fresh = || Kernels::new(context, Cubins::at(folder.path()));
    let counts = |kernels: &Kernels| (kernels.counts().compiled, kernels.counts().read_from_disk);
    let timed = |what: &str| {
        let (kernels, start) = (fresh(), Instant::now());
        kernels.function(&text(), "add").expect("a kernel");
        eprintln!("{what}: {:.2} ms", start.elapsed().as_secs_f64() * 1e3);
        kernels.function(&text(), "increment").expect("a kernel");
        counts(&kernels)
    };
    assert_eq!(timed("compiled"), (1, 0));
    assert_eq!(timed("read from disk"), (0, 1));
    let path = Cubins::at(folder.path()).path(&text(), context.facts().capability).expect("a path");
    let whole = std::fs::read(&path).expect("the file");
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 4;
    std::fs::write(&path, damaged).expect("written");
    assert_eq!(timed("damaged"), (1, 0));
    assert_eq!(timed("repaired"), (0, 1));
    // Whole by its checksum, and not what this driver takes.
    assert!(Cubins::at(folder.path()).store(&path, b"\x7fELF that is none"));
    assert_eq!(timed("refused by the driver"), (1, 0));
    assert_eq!(timed("repaired"), (0, 1));

    std::fs::remove_file(&path).expect("removed");
    let (one, two) = (fresh(), fresh());
    std::thread::scope(|scope| {
        for kernels in [&one, &two, &one, &two] {
            scope.spawn(|| {
                for entry in ["add", "nothing", "increment"] {
                    kernels.function(&text(), entry).expect("a kernel");
                }
            });
        }
    });
    assert_eq!(std::fs::read(&path).expect("the file").len(), whole.len());
    assert!(std::ptr::eq(one.function(&text(), "add").expect(""), one.function(&text(), "add").expect("")));

    let below_a_file = Kernels::new(context, Cubins::at(path.join("nowhere")));
    below_a_file.function(&text(), "add").expect("a folder that cannot be written is no error");
    let wrong = Text { text: "extern \"C\" __global__ void f() {\n  nope();\n}", key: 1, ..text() };
    let said = below_a_file.function(&wrong, "f").err().expect("a wrong text").to_string();
    assert!(said.contains("test.cu:2:   nope();"), "{said}");
}

#[test]
fn many_kernels_are_prepared_at_once() {
    let Some((_alone, context)) = gpu() else { return };
    let texts: Vec<String> = (0..16).map(|at| TEXT.replace("now - start", &format!("now - start + {at}"))).collect();
    let texts: Vec<Text<'_>> =
        texts.iter().map(|text| Text { text, key: hash::hash(text.as_bytes()), ..self::text() }).collect();
    let kernels = [Kernels::new(context, Cubins::none()), Kernels::new(context, Cubins::none())];
    let start = Instant::now();
    for text in &texts {
        kernels[0].function(text, "add").expect("a kernel");
    }
    let alone = start.elapsed();
    let wrong = Text { text: "no text", key: 1, ..text() };
    let expected: Vec<_> = texts.iter().map(|&text| (text, "add")).chain([(wrong, "add")]).collect();
    let start = Instant::now();
    kernels[1].prepare(&expected);
    eprintln!("16 kernels one by one in {:.0} ms, at once in {:.0} ms", ms(alone), ms(start.elapsed()));
    assert!(texts.iter().all(|text| kernels[1].known(text.key, "add").is_some()));
    assert_eq!((kernels[1].counts().compiled, kernels[1].known(1, "add").is_none()), (16, true));
}
