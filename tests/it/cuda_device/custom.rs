//! Kernels of CUDA text on real GPUs: values, graphs, streams, late faults with the line of the launch. Each run is a
//! process of its own.

use super::gpu;

const SOURCE: &str = "let source = `
extern \"C\" __global__ void axpy(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
extern \"C\" __global__ void sums(const double* x, double* out, long long n) {
    extern __shared__ double part[];
    double sum = 0;
    for (long long i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
    part[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) { for (int i = 1; i < blockDim.x; i++) sum += part[i]; *out = sum; }
}
extern \"C\" __global__ void astray(float* x, bool on) { if (on) *(float*)(1ull << 60) = *x; }
`;
";

fn run(words: &[&str], script: &str) -> (String, String, i32) {
    super::run(words, &[], &format!("{SOURCE}{script}"))
}

#[test]
fn values_among_other_work() {
    if gpu().is_none() {
        return;
    }
    let script = "let k = cuda::kernel(source, \"axpy\");
let x = arange(1000, #{device: \"cuda\", dtype: \"f32\"});
let y = ones([1000], #{device: \"cuda\"}) * 2;
k([4], [256], [x + 1, y, 0.5, 1000]);
let z = (y - 2) * 2;
print(z.sum().item(), (y[999]).item());
k(1, 32, [x[0..0], y[0..0], 1.0, 0]);
let s = cuda::kernel(source, \"sums\");
let out = zeros([], #{device: \"cuda\", dtype: \"f64\"});
s(1, 128, [x.double(), out, 1000], #{shared_mem: 1024});
print(out.item());
let before = y._version;
k([4], [256], [x, y, 0, 1000]);
print(y._version > before);
";
    for words in [&[][..], &["--blocking"]] {
        let (out, reported, status) = run(words, script);
        assert_eq!((out.as_str(), status), ("500500.0 502.0\n499500.0\ntrue\n", 0), "{reported}");
    }
}

#[test]
fn repeated_launches_become_graphs_with_their_numbers() {
    if gpu().is_none() {
        return;
    }
    let script = "let k = cuda::kernel(source, \"axpy\");
let x = ones([300], #{device: \"cuda\"});
let y = zeros([300], #{device: \"cuda\"});
let total = 0.0;
for i in 0..40 {
    let w = (x * 2).cumsum(0).cumsum(0) * 0 + x;
    k([2], [256], [w, y, i, 300]);
    total += i;
    print_if(i, y, total);
}
fn print_if(i, y, total) { if i % 13 == 0 { if y.sum().item() != total * 300 { print(`wrong in round ${i}`); } } }
print(y.sum().item() == 300 * 780);
";
    let (out, reported, status) = run(&[], script);
    assert_eq!((out.as_str(), status), ("true\n", 0), "{reported}");
}

#[test]
fn streams_and_races_know_what_is_written() {
    if gpu().is_none() {
        return;
    }
    let script = "let k = cuda::kernel(source, \"axpy\");
let x = ones([300], #{device: \"cuda\"});
let y = zeros([300], #{device: \"cuda\"});
let s = stream();
with_stream(s, || k([2], [256], [x, y, 3, 300]));
print(y.sum().item());
";
    let (_, reported, status) = run(&[], script);
    assert_eq!(status, 0, "{reported}");
    assert!(reported.contains("E0501") && reported.contains("`cuda::kernel`"), "{reported}");
}

#[test]
fn errors_name_the_text_or_the_launch() {
    if gpu().is_none() {
        return;
    }
    let (_, reported, status) =
        run(&[], "cuda::kernel(`extern \"C\" __global__ void f(float* x) {\n  *x = yy;\n}`, \"f\");\n");
    assert_eq!(status, 1);
    assert!(reported.contains("E0216") && reported.contains("identifier \"yy\" is undefined"), "{reported}");
    let astray = "let k = cuda::kernel(source, \"astray\");
let x = ones([4], #{device: \"cuda\"});
k(1, 1, [x, false]);
print(x.sum().item());
k(1, 1, [x, true]);
print(x.sum().item());
";
    let (out, reported, status) = run(&["--blocking"], astray);
    assert_eq!((out.as_str(), status), ("4.0\n", 3), "{reported}");
    assert!(reported.contains("E0408") && reported.contains("`cuda::kernel`"), "{reported}");
    assert!(reported.contains(&format!("script.rhai:{}:", SOURCE.lines().count() + 5)), "{reported}");
}
