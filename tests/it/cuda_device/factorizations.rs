//! Factorizations of matrices that are large enough for the library: they multiply to the matrix, and failures are told as the
//! CPU tells them.

use super::*;

/// Prints what is off, and a last line.
const SCRIPT: &str = r#"
manual_seed(3);
let off = |a, b| ((a - b).abs().max() / (1.0 + b.abs().max())).item();
let check = |name, found, bound| if !(found <= bound) { print(`${name}: off by ${found}`); };
let told = |name, f| {
    let found = "nothing";
    try { f.call().cpu(); cuda::synchronize(); } catch (e) { found = e.code; }
    print(`${name}: ${found}`);
};
for dtype in ["f32", "f64"] {
    let bound = if dtype == "f32" { 2e-4 } else { 1e-11 };
    for shape in [[256, 256], [300, 300], [1, 513, 513], [2, 520, 520]] {
        let n = shape[-1];
        let a = randn(shape, #{dtype: dtype});
        let spd = a @ a.mT / n.to_float() + eye(n, #{dtype: dtype});
        let [x, p] = [a.to("cuda:0"), spd.to("cuda:0")];
        let b = randn(shape, #{dtype: dtype}).narrow(-1, 0, 7).to("cuda:0");
        let wide = a + eye(n, #{dtype: dtype}) * 40.0;
        let w = wide.to("cuda:0");
        let l = cholesky(p);
        if l.device != "cuda:0" { print(`on ${l.device}`); }
        check.call(`cholesky ${dtype} ${shape}`, off.call(l @ l.mT, p), bound);
        check.call(`its triangle ${dtype} ${shape}`, l.triu(1).abs().max().item(), 0.0);
        check.call(`cholesky, upper ${dtype} ${shape}`, off.call(cholesky(p, #{upper: true}), l.mT), bound);
        let #{P: q, L: lower, U: upper} = lu(x);
        check.call(`lu ${dtype} ${shape}`, off.call(q @ lower @ upper, x), bound);
        let #{LU: packed, pivots} = lu_factor(x);
        check.call(`lu_factor ${dtype} ${shape}`, off.call(lu_solve(packed, pivots, x @ b), b), bound * 100.0);
        check.call(`solve ${dtype} ${shape}`, off.call(w @ solve(w, b), b), bound);
        check.call(`inv ${dtype} ${shape}`, off.call(w @ inv(w), eye(n, #{dtype: dtype, device: "cuda:0"})), bound);
        check.call(`slogdet ${dtype} ${shape}`, off.call(slogdet(x).logabsdet.cpu(), slogdet(a).logabsdet), bound);
        check.call(`its sign ${dtype} ${shape}`, off.call(slogdet(x).sign.cpu(), slogdet(a).sign), 0.0);
        let #{Q: q, R: r} = qr(x);
        check.call(`qr ${dtype} ${shape}`, off.call(q @ r, x), bound);
        check.call(`orthonormal ${dtype} ${shape}`, off.call(q.mT @ q, eye(n, #{dtype: dtype, device: "cuda:0"})), bound);
        check.call(`r ${dtype} ${shape}`, r.tril(-1).abs().max().item(), 0.0);
    }
    let tall = randn([700, 300], #{dtype: dtype, device: "cuda:0"});
    for mode in ["reduced", "complete", "r"] {
        let #{Q: q, R: r} = qr(tall, mode);
        let #{Q: c, R: d} = qr(tall.cpu(), mode);
        if q.shape != c.shape || r.shape != d.shape { print(`${mode}: ${q.shape}, ${r.shape}`); }
        if mode != "r" { check.call(`tall ${mode} ${dtype}`, off.call(q @ r, tall), bound); }
        check.call(`rows of r, ${mode} ${dtype}`, off.call(r.abs().cpu(), d.abs()), bound * 10.0);
    }
    let flat = tall.mT;
    let #{Q: q, R: r} = qr(flat);
    check.call(`flat ${dtype}`, off.call(q @ r, flat), bound);
    let #{P: p, L: l, U: u} = lu(tall);
    check.call(`tall lu ${dtype}`, off.call(p @ l @ u, tall), bound);
    let #{P: p, L: l, U: u} = lu(flat);
    check.call(`flat lu ${dtype}`, off.call(p @ l @ u, flat), bound);
    let none = zeros([300, 300], #{dtype: dtype, device: "cuda:0"});
    let bad = eye(300, #{dtype: dtype, device: "cuda:0"});
    bad[250, 250] = -1.0;
    let missing = eye(300, #{dtype: dtype, device: "cuda:0"});
    missing[100, 100] = NAN;
    print(`info ${cholesky_ex(bad).info.item()} ${cholesky_ex(missing).info.item()} ${cholesky_ex(none).info.item()}`);
    told.call("not positive-definite", || cholesky(bad));
    told.call("NaN", || cholesky(missing));
    told.call("singular", || solve(none, none));
    told.call("no inverse", || inv(none));
    print(`determinants ${det(none).item()} ${det(bad).item()}`);
}
print("done");
"#;

#[test]
fn large_factorizations_are_the_cpus() {
    if gpu().is_none() {
        return;
    }
    let (found, complaint, status) = run(&[], &[], SCRIPT);
    let failures = "info 251 101 1\nnot positive-definite: E0405\nNaN: E0405\nsingular: E0406\nno inverse: E0406\ndeterminants 0.0 -1.0\n";
    assert_eq!((found, status), (format!("{failures}{failures}done\n"), 0), "{complaint}");
}
