"""What `breadth.py` times: every operation, at three sizes, forward and gradient.

A case is one expression that means the same in PyTorch and in tscript (`breadth.py` rewrites `dim=1` as `dim: 1`,
`fft.rfft(x)` as `fft::rfft(x)`), the inputs it names, and for each of the three sizes (inside a cache, ordinary, large)
their shapes. `tests/it/breadth.rs` holds this file against the op table: a name of the table is in an expression here, or in
NOT_TIMED with its reason.
"""


class Input:
    """An input: its kind, its shape at each of the three sizes, and for integers their bound at each."""

    def __init__(self, kind, shapes, bounds=None):
        self.kind, self.shapes, self.bounds = kind, shapes, bounds


class Case:
    def __init__(self, chapter, text, inputs, grad, name, layouts, module):
        self.chapter, self.text, self.inputs, self.grad = chapter, text, inputs, grad
        self.name, self.layouts, self.module = name, layouts, module


CASES = []
CHAPTER = ["pointwise"]


def chapter(name):
    CHAPTER[0] = name


def case(text, grad=True, name=None, layouts=False, module=None, **inputs):
    """Adds a case. `grad` asks for the time of forward and backward too, `layouts` for transposed inputs too; `module` is a
    pair of texts that make the value `m`, in tscript and in Python."""
    CASES.append(Case(CHAPTER[0], text, inputs, grad, name or text, layouts, module))


def f(*shapes):
    """Floats in [-2, 2)."""
    return Input("f", list(shapes) * 3 if len(shapes) == 1 else list(shapes))


def p(*shapes):
    """Floats in [0.05, 0.95): probabilities, and arguments of functions with poles."""
    return Input("p", list(shapes) * 3 if len(shapes) == 1 else list(shapes))


def i(bound, *shapes):
    """Integers in [0, bound); `bound` may be one number or one for each size."""
    bounds = bound if isinstance(bound, list) else [bound] * 3
    return Input("i", list(shapes) * 3 if len(shapes) == 1 else list(shapes), bounds)


def b(*shapes):
    """Truth values."""
    return Input("b", list(shapes) * 3 if len(shapes) == 1 else list(shapes))


def s(*shapes):
    """Symmetric matrices that are positive definite."""
    return Input("s", list(shapes) * 3 if len(shapes) == 1 else list(shapes))


SQUARES = [(128, 128), (1024, 1024), (4096, 4096)]
LINES = [(16384,), (1 << 20,), (1 << 24,)]

# ---------------------------------------------------------------------------------------------------------- pointwise
for function in """neg square abs sgn sign reciprocal exp exp2 expm1 sin cos tan atan sinh cosh tanh asinh sigmoid floor ceil
        trunc frac deg2rad rad2deg round positive nan_to_num erf erfc sinc""".split():
    case(f"x.{function}()", layouts=function in ("exp", "neg"), x=f(*SQUARES))
for function in """sqrt rsqrt log log2 log10 log1p asin acos atanh lgamma digamma logit erfinv i0""".split():
    case(f"x.{function}()", x=p(*SQUARES))
case("(x + 1.5).acosh()", x=p(*SQUARES))
for function in """isnan isinf isfinite isposinf isneginf signbit isreal logical_not""".split():
    case(f"x.{function}()", grad=False, x=f(*SQUARES))
for function in "entr ndtr ndtri log_ndtr erfcx i0e i1e i1".split():
    case(f"special.{function}(x)", grad=function in ("entr", "ndtr"), x=p(*SQUARES))
for function in """bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0
        modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 airy_ai""".split():
    case(f"special.{function}(x)", grad=False, x=p(*SQUARES))
for function in """chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
        shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
        shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l
        legendre_polynomial_p""".split():
    case(f"special.{function}(x, n)", grad=False, x=p(*SQUARES), n=i(6, *SQUARES))
case("special.polygamma(1, x)", x=p(*SQUARES))
case("x.mvlgamma(2)", x=Input("q", SQUARES))
case("special.zeta(x, y)", grad=False, x=Input("q", SQUARES), y=p(*SQUARES))
case("special.xlog1py(x, y)", x=p(*SQUARES), y=p(*SQUARES))
for text in """x+y x-y x*y x/y""".split():
    case(f"x {text[1]} y", layouts=True, x=f(*SQUARES), y=p(*SQUARES))
case("x + 1.5", x=f(*SQUARES))
case("x * 1.5", x=f(*SQUARES))
case("2.0 - x", x=f(*SQUARES))
case("rsub(x, y)", grad=False, x=f(*SQUARES), y=f(*SQUARES))
case("x.add(y, alpha=0.5)", x=f(*SQUARES), y=f(*SQUARES))
case("x.sub(y)", x=f(*SQUARES), y=f(*SQUARES))
case("x.mul(y)", x=f(*SQUARES), y=f(*SQUARES))
case("x.div(y)", x=f(*SQUARES), y=p(*SQUARES))
case("x.true_divide(y)", grad=False, x=f(*SQUARES), y=p(*SQUARES))
case("x + r", name="x + row", x=f(*SQUARES), r=f((128,), (1024,), (4096,)))
case("x - c", name="x - column", x=f(*SQUARES), c=f((128, 1), (1024, 1), (4096, 1)))
case("r * c", name="row * column", grad=False, r=f((128,), (1024,), (4096,)), c=f((128, 1), (1024, 1), (4096, 1)))
for function in """floor_divide remainder fmod pow float_power""".split():
    case(f"x.{function}(y)", grad=function != "floor_divide", x=p(*SQUARES), y=p(*SQUARES))
case("x.pow(2.5)", x=p(*SQUARES))
case("x.pow(3)", x=f(*SQUARES))
case("x.remainder(0.7)", grad=False, x=f(*SQUARES))
for function in "atan2 hypot copysign maximum minimum fmax fmin logaddexp logaddexp2 xlogy".split():
    case(f"x.{function}(y)", x=p(*SQUARES), y=p(*SQUARES))
for function in "nextafter heaviside".split():
    case(f"x.{function}(y)", grad=False, x=f(*SQUARES), y=f(*SQUARES))
case("x.ldexp(n)", grad=False, x=f(*SQUARES), n=i(6, *SQUARES))
for function in "eq ne lt le gt ge logical_and logical_or logical_xor isclose".split():
    case(f"x.{function}(y)", grad=False, x=f(*SQUARES), y=f(*SQUARES))
case("x > 0.5", grad=False, x=f(*SQUARES))
for function in "gcd lcm bitwise_and bitwise_or bitwise_xor".split():
    case(f"m.{function}(n)", grad=False, m=i(1000, *SQUARES), n=i(1000, *SQUARES))
for function in "bitwise_left_shift bitwise_right_shift".split():
    case(f"m.{function}(n)", grad=False, m=i(1000, *SQUARES), n=i(8, *SQUARES))
case("m.bitwise_not()", grad=False, m=i(1000, *SQUARES))
case("m + n", name="i64 m + n", grad=False, m=i(1000, *SQUARES), n=i(1000, *SQUARES))
case("m * 3", name="i64 m * 3", grad=False, m=i(1000, *SQUARES))
case("m.remainder(7)", name="i64 remainder", grad=False, m=i(1000, *SQUARES))
case("m.floor_divide(7)", name="i64 floor_divide", grad=False, m=i(1000, *SQUARES))
case("allclose(x, y)", grad=False, x=f(*SQUARES), y=f(*SQUARES))
case("x.equal(x)", grad=False, x=f(*SQUARES))
case("where(q, x, y)", x=f(*SQUARES), y=f(*SQUARES), q=b(*SQUARES))
case("x.masked_fill(q, 0.5)", x=f(*SQUARES), q=b(*SQUARES))
case("x.clamp(-0.5, 0.5)", x=f(*SQUARES))
case("x.clamp_min(0.0)", x=f(*SQUARES))
case("x.clamp_max(0.0)", x=f(*SQUARES))
case("x.lerp(y, 0.3)", x=f(*SQUARES), y=f(*SQUARES))
case("x.addcmul(y, z)", x=f(*SQUARES), y=f(*SQUARES), z=f(*SQUARES))
case("x.addcdiv(y, z)", x=f(*SQUARES), y=f(*SQUARES), z=p(*SQUARES))
case("x.clone().fill_(0.5)", grad=False, x=f(*SQUARES))
case("x.clone().zero_()", grad=False, x=f(*SQUARES))
case("x.clone().fill_diagonal_(0.5)", grad=False, x=f(*SQUARES))
case("x.clone().copy_(y)", grad=False, x=f(*SQUARES), y=f(*SQUARES))
case("x.clone().add_(y)", grad=False, x=f(*SQUARES), y=f(*SQUARES))
case("x.clone().mul_(0.5)", grad=False, x=f(*SQUARES))
case("igamma(x, y)", grad=False, x=p(*SQUARES), y=p(*SQUARES))
case("igammac(x, y)", grad=False, x=p(*SQUARES), y=p(*SQUARES))
case("complex(x, y)", grad=False, x=f(*SQUARES), y=f(*SQUARES))
case("polar(x, y)", grad=False, x=p(*SQUARES), y=f(*SQUARES))
case("view_as_complex(x) * view_as_complex(y)", grad=False, x=f((64, 64, 2), (512, 1024, 2), (2048, 4096, 2)),
     y=f((64, 64, 2), (512, 1024, 2), (2048, 4096, 2)))
case("view_as_complex(x).conj_physical()", grad=False, x=f((64, 64, 2), (512, 1024, 2), (2048, 4096, 2)))
case("view_as_complex(x).angle()", grad=False, x=f((64, 64, 2), (512, 1024, 2), (2048, 4096, 2)))
case("view_as_complex(x).abs()", grad=False, x=f((64, 64, 2), (512, 1024, 2), (2048, 4096, 2)))
case("(x * 1.5 + 0.1).relu() * 0.5 + x.tanh()", name="chain of six", x=f(*SQUARES))

# --------------------------------------------------------------------------------------------------------- activations
chapter("activation")
for function in """relu relu6 leaky_relu elu selu celu gelu silu mish softplus hardtanh hardsigmoid hardswish softsign
        tanhshrink logsigmoid softshrink hardshrink""".split():
    case(f"{function}(x)", x=f(*SQUARES))
case("threshold(x, 0.1, 0.2)", x=f(*SQUARES))
case("glu(x)", x=f(*SQUARES))
case("prelu(x, w)", x=f((32, 16, 64), (32, 64, 32, 32), (64, 64, 64, 64)), w=p((16,), (64,), (64,)))
for function in "softmax log_softmax softmin".split():
    case(f"{function}(x, 1)", layouts=True, x=f(*SQUARES))
    case(f"{function}(x, 0)", x=f(*SQUARES))
case("softmax(x, 1)", name="softmax, rows of 32000", x=f((4, 32000), (64, 32000), (1024, 32000)))
case("softmax(x, -1)", name="softmax, rows of 64", x=f((256, 64), (16384, 64), (262144, 64)))

# ---------------------------------------------------------------------------------------------------------- reductions
chapter("reduction")
for function in "sum mean amax amin prod nansum nanmean var std logsumexp".split():
    case(f"x.{function}(1)", layouts=True, x=p(*SQUARES))
    case(f"x.{function}(0)", x=p(*SQUARES))
for function in "sum mean max min prod var std nansum nanmean".split():
    case(f"x.{function}()", x=p(*SQUARES))
for function in "all any count_nonzero argmax argmin".split():
    case(f"x.{function}()", grad=False, x=f(*SQUARES))
    case(f"x.{function}(1)", grad=False, x=f(*SQUARES))
    case(f"x.{function}(0)", grad=False, x=f(*SQUARES))
for function in "max min".split():
    case(f"x.{function}(1)", x=f(*SQUARES))
    case(f"x.{function}(0)", x=f(*SQUARES))
case("x.aminmax()", grad=False, x=f(*SQUARES))
case("var_mean(x, 1)", x=f(*SQUARES))
case("std_mean(x, 1)", x=f(*SQUARES))
case("m.sum()", name="i64 sum", grad=False, m=i(1000, *SQUARES))
case("m.sum(1)", name="i64 sum(1)", grad=False, m=i(1000, *SQUARES))
case("q.sum()", name="bool sum", grad=False, q=b(*SQUARES))
case("q.all()", name="bool all", grad=False, q=b(*SQUARES))
case("x.sum([0, 2])", name="sum over the ends", x=f((16, 32, 32), (64, 256, 64), (256, 256, 256)))
case("x.norm()", x=f(*SQUARES))
case("vector_norm(x, 2.0, 1)", x=f(*SQUARES))
case("matrix_norm(x)", x=f(*SQUARES))
case("x.renorm(2.0, 0, 1.0)", x=f(*SQUARES))
case("x.cov()", x=f((16, 1024), (128, 8192), (512, 32768)))
case("x.corrcoef()", grad=False, x=f((16, 1024), (128, 8192), (512, 32768)))
for function in "cumsum cumprod logcumsumexp cummax cummin".split():
    case(f"x.{function}(1)", grad=function in ("cumsum", "cumprod", "cummax"), x=p(*SQUARES))
    case(f"x.{function}(0)", grad=False, x=p(*SQUARES))
case("x.cumsum(0)", name="cumsum of a line", x=p(*LINES))
case("x.diff()", x=f(*SQUARES))
case("trapezoid(x)", x=f(*SQUARES))
case("cumulative_trapezoid(x)", grad=False, x=f(*SQUARES))
case("gradient(x)", grad=False, x=f(*SQUARES))
case("x.histc(100, -2.0, 2.0)", grad=False, x=f(*SQUARES))
case("x.trace()", x=f(*SQUARES))
case("x.dist(y)", x=f(*SQUARES), y=f(*SQUARES))

# ------------------------------------------------------------------------------------------------------------ ordering
chapter("ordering")
case("x.sort(0)", name="sort of a line", x=f(*LINES))
case("x.sort(1)", layouts=True, x=f(*SQUARES))
case("x.sort(0)", name="sort of columns", grad=False, x=f(*SQUARES))
case("m.sort(0)", name="i64 sort of a line", grad=False, m=i(1 << 40, *LINES))
case("x.argsort(1)", grad=False, x=f(*SQUARES))
case("x.msort()", grad=False, x=f(*SQUARES))
case("x.topk(100)", name="topk 100 of a line", x=f(*LINES))
case("x.topk(10, 1)", name="topk 10 of rows", x=f(*SQUARES))
case("x.kthvalue(50, 1)", grad=False, x=f(*SQUARES))
case("x.median()", grad=False, x=f(*SQUARES))
case("x.median(1)", x=f(*SQUARES))
case("x.nanmedian(1)", grad=False, x=f(*SQUARES))
case("m.mode(1)", grad=False, m=i(50, (64, 128), (1024, 256), (16384, 256)))
case("x.quantile(0.3, 1)", grad=False, x=f((128, 128), (1024, 1024), (2048, 4096)))
case("x.nanquantile(0.3, 1)", grad=False, x=f((128, 128), (1024, 1024), (2048, 4096)))
case("m.unique()", grad=False, m=i([1000, 50000, 1000000], *LINES))
case("x.unique()", name="f32 unique", grad=False, x=f(*LINES))
case("m.unique_consecutive()", grad=False, m=i(4, *LINES))
case("m.bincount()", grad=False, m=i([100, 1000, 10000], *LINES))
case("searchsorted(v, x)", grad=False, v=Input("o", [(1000,), (10000,), (100000,)]), x=f(*SQUARES))
case("bucketize(x, v)", grad=False, v=Input("o", [(100,), (100,), (100,)]), x=f(*SQUARES))
case("isin(m, v)", grad=False, m=i(100000, *LINES), v=i(100000, (1000,), (1000,), (1000,)))

# ------------------------------------------------------------------------------------------------------------ indexing
chapter("indexing")
TABLE = [(1000, 64), (50000, 128), (200000, 256)]
PICKS = [(1024,), (32768,), (131072,)]
ROWS = [1000, 50000, 200000]
case("x[k]", name="x[rows]", x=f(*TABLE), k=i(ROWS, *PICKS))
case("embedding(k, x)", x=f(*TABLE), k=i(ROWS, *PICKS))
case("x.index_select(0, k)", x=f(*TABLE), k=i(ROWS, *PICKS))
case("x.index_select(1, k)", x=f(*SQUARES), k=i([128, 1024, 4096], (64,), (512,), (2048,)))
case("x.gather(1, k)", x=f(*SQUARES), k=i([128, 1024, 4096], *SQUARES))
case("x.gather(0, k)", x=f(*SQUARES), k=i([128, 1024, 4096], *SQUARES))
case("x.take(k)", x=f(*SQUARES), k=i([1 << 14, 1 << 20, 1 << 24], *LINES))
case("take_along_dim(x, k, 1)", x=f(*SQUARES), k=i([128, 1024, 4096], *SQUARES))
case("x.scatter(1, k, y)", grad=False, x=f(*SQUARES), k=Input("u", SQUARES), y=f(*SQUARES))
case("x.scatter_add(1, k, y)", x=f(*SQUARES), k=i([128, 1024, 4096], *SQUARES), y=f(*SQUARES))
case("x.scatter_add(0, k, y)", x=f(*SQUARES), k=i([128, 1024, 4096], *SQUARES), y=f(*SQUARES))
case('x.scatter_reduce(1, k, y, "amax")', grad=False, x=f(*SQUARES), k=i([128, 1024, 4096], *SQUARES), y=f(*SQUARES))
case("x.index_add(0, k, y)", x=f(*TABLE), k=i(ROWS, *PICKS), y=f((1024, 64), (32768, 128), (131072, 256)))
case("x.index_fill(0, k, 0.5)", x=f(*TABLE), k=i(ROWS, *PICKS))
case('x.index_reduce(0, k, y, "amax")', grad=False, x=f(*TABLE), k=i(ROWS, *PICKS),
     y=f((1024, 64), (32768, 128), (131072, 256)))
case("x[q]", name="x[mask]", x=f(*SQUARES), q=b(*SQUARES))
case("x.masked_select(q)", grad=False, x=f(*SQUARES), q=b(*SQUARES))
case("x.masked_scatter(q, y)", x=f(*SQUARES), q=b(*SQUARES), y=f(*SQUARES))
case("q.nonzero()", grad=False, q=b(*SQUARES))
case("x.argwhere()", grad=False, x=f(*SQUARES))
case("x[k, j]", name="x[rows, columns]", x=f(*SQUARES), k=i([128, 1024, 4096], *LINES), j=i([128, 1024, 4096], *LINES))
case("x.put(k, y)", grad=False, x=f(*SQUARES), k=Input("u1", [(4096,), (1 << 18,), (1 << 22,)]),
     y=f((4096,), (1 << 18,), (1 << 22,)))
case("one_hot(k, 100)", grad=False, k=i(100, (256,), (16384,), (262144,)))
case("embedding_bag(k, x)", x=f(*TABLE), k=i(ROWS, (128, 8), (4096, 8), (16384, 8)))

# -------------------------------------------------------------------------------------------------------------- shapes
chapter("shape")
case("x.t().contiguous()", name="transpose to contiguous", x=f(*SQUARES))
case("x.permute(0, 2, 3, 1).contiguous()", name="NCHW to NHWC", x=f((4, 16, 16, 16), (32, 64, 28, 28), (64, 256, 56, 56)))
case("x.transpose(1, 2).contiguous()", name="swap heads", x=f((2, 32, 4, 32), (32, 128, 12, 64), (32, 1024, 16, 64)))
case("cat([x, y], 0)", x=f(*SQUARES), y=f(*SQUARES))
case("cat([x, y], 1)", x=f(*SQUARES), y=f(*SQUARES))
case("stack([x, y])", x=f(*SQUARES), y=f(*SQUARES))
case("stack([x, y], -1)", name="stack, last dim", x=f(*SQUARES), y=f(*SQUARES))
for function in "hstack vstack dstack column_stack".split():
    case(f"{function}([x, y])", grad=False, x=f(*SQUARES), y=f(*SQUARES))
case("x.repeat(2, 2)", x=f((64, 64), (512, 512), (2048, 2048)))
case("x.tile([2, 2])", grad=False, x=f((64, 64), (512, 512), (2048, 2048)))
case("x.repeat_interleave(4, 0)", x=f((64, 64), (512, 512), (2048, 2048)))
case("x.repeat_interleave(4, 1)", x=f((64, 64), (512, 512), (2048, 2048)))
case("x.flip([0])", x=f(*SQUARES))
case("x.flip([1])", x=f(*SQUARES))
case("x.fliplr()", grad=False, x=f(*SQUARES))
case("x.flipud()", grad=False, x=f(*SQUARES))
case("x.roll(3, 1)", x=f(*SQUARES))
case("x.rot90()", grad=False, x=f(*SQUARES))
case("x.tril()", x=f(*SQUARES))
case("x.triu()", x=f(*SQUARES))
case("x.diag_embed()", x=f((16, 64), (64, 256), (256, 256)))
case("x.diag()", name="diag of a line", x=f((128,), (1024,), (4096,)))
case("x.clone()", layouts=True, x=f(*SQUARES))
case("pad(x, [1, 1, 1, 1])", x=f((4, 16, 16, 16), (32, 64, 28, 28), (64, 64, 112, 112)))
for mode in "reflect replicate circular".split():
    case(f'pad(x, [2, 2, 2, 2], mode="{mode}")', x=f((4, 16, 16, 16), (32, 64, 28, 28), (64, 64, 112, 112)))
case("x.unfold(1, 16, 8).contiguous()", name="windows of rows", x=f(*SQUARES))
case("tril_indices(200, 200)", grad=False, x=f((1,)))
case("cartesian_prod(x, y)", grad=False, x=f((64,), (512,), (2048,)), y=f((64,), (512,), (2048,)))
case("combinations(x)", grad=False, x=f((64,), (512,), (2048,)))
for dtype in "bfloat16 half double long int".split():
    case(f"x.{dtype}()", grad=False, name=f"f32 to {dtype}", x=f(*SQUARES))
case("m.float()", grad=False, name="i64 to f32", m=i(1000, *SQUARES))

# ----------------------------------------------------------------------------------------------------- making tensors
chapter("creation")
for text in """zeros([{n}]) ones([{n}]) full([{n}],0.5) arange({n}) linspace(0.0,1.0,{n}) logspace(0.0,1.0,{n})
        hann_window({n})""".split():
    case(text.replace(",", ", "), grad=False, n=Input("n", [1 << 14, 1 << 20, 1 << 24]))
case("eye({n})", grad=False, n=Input("n", [128, 1024, 4096]))
case("zeros_like(x)", grad=False, x=f(*SQUARES))
case("ones_like(x)", grad=False, x=f(*SQUARES))
case("meshgrid(x, y)[0].contiguous()", name="meshgrid", grad=False, x=f((128,), (1024,), (4096,)), y=f((128,), (1024,), (4096,)))

# ------------------------------------------------------------------------------------------------------ random numbers
chapter("random")
for text in "rand([{n}]) randn([{n}]) randint(100,[{n}]) randperm({n})".split():
    case(text.replace(",", ", "), grad=False, n=Input("n", [1 << 14, 1 << 20, 1 << 24]))
case("rand_like(x)", grad=False, x=f(*SQUARES))
case("randn_like(x)", grad=False, x=f(*SQUARES))
case("bernoulli(x)", grad=False, x=p(*SQUARES))
case("poisson(x)", grad=False, x=p(*SQUARES))
case("dropout(x, 0.1)", x=f(*SQUARES))
case("multinomial(x, 1000, True)", grad=False, x=p((1000,), (100000,), (1000000,)))
case("multinomial(x, 1)", name="multinomial of rows", grad=False, x=p((8, 1000), (64, 32000), (512, 32000)))
for text in "uniform_() exponential_() cauchy_() log_normal_() geometric_(0.3)".split():
    case(f"x.clone().{text}", grad=False, x=p(*SQUARES))

# ------------------------------------------------------------------------------------------------------ linear algebra
chapter("linear algebra")
MATRICES = [(128, 128), (512, 512), (2048, 2048)]
case("x @ y", layouts=True, x=f(*MATRICES), y=f(*MATRICES))
case("x @ v", name="matrix @ vector", x=f(*SQUARES), v=f((128,), (1024,), (4096,)))
case("v @ x", name="vector @ matrix", grad=False, x=f(*SQUARES), v=f((128,), (1024,), (4096,)))
case("bmm(x, y)", x=f((16, 32, 32), (64, 128, 128), (256, 256, 256)), y=f((16, 32, 32), (64, 128, 128), (256, 256, 256)))
case("bmm(x, y)", name="bmm, many small", x=f((64, 8, 8), (4096, 8, 8), (65536, 8, 8)), y=f((64, 8, 8), (4096, 8, 8), (65536, 8, 8)))
case("x.dot(y)", x=f(*LINES), y=f(*LINES))
case("vecdot(x, y)", grad=False, x=f(*SQUARES), y=f(*SQUARES))
case("outer(x, y)", x=f((128,), (1024,), (4096,)), y=f((128,), (1024,), (4096,)))
case("linear(x, w, c)", x=f((32, 128), (256, 784), (4096, 1024)), w=f((64, 128), (512, 784), (4096, 1024)), c=f((64,), (512,), (4096,)))
case("bilinear(x, y, w)", x=f((32, 16), (256, 64), (1024, 128)), y=f((32, 16), (256, 64), (1024, 128)),
     w=f((8, 16, 16), (32, 64, 64), (64, 128, 128)))
case("kron(x, y)", x=f((8, 8), (32, 32), (64, 64)), y=f((16, 16), (32, 32), (64, 64)))
case("matrix_power(x * 0.01, 5)", x=f(*MATRICES))
case("cross(x, y, 1)", x=f((1000, 3), (100000, 3), (2000000, 3)), y=f((1000, 3), (100000, 3), (2000000, 3)))
case("addmm(x, y, z)", x=f(*MATRICES), y=f(*MATRICES), z=f(*MATRICES))
case("baddbmm(x, y, z)", grad=False, x=f((16, 32, 32), (64, 128, 128), (256, 256, 256)), y=f((16, 32, 32), (64, 128, 128), (256, 256, 256)),
     z=f((16, 32, 32), (64, 128, 128), (256, 256, 256)))
case("addmv(v, x, v)", grad=False, x=f(*SQUARES), v=f((128,), (1024,), (4096,)))
case("addr(x, v, v)", grad=False, x=f(*SQUARES), v=f((128,), (1024,), (4096,)))
FACTORED = [(64, 16, 16), (32, 128, 128), (1024, 1024)]
for function in "cholesky".split():
    case(f"{function}(a)", a=s(*FACTORED))
case("solve(a, y)", a=s(*FACTORED), y=f((64, 16, 4), (32, 128, 16), (1024, 64)))
for function in "inv det slogdet logdet lu lu_factor qr".split():
    case(f"{function}(a)", grad=function in ("inv", "det", "logdet"), a=s(*FACTORED))
case("solve_triangular(a, y, upper=False)", grad=False, a=s(*FACTORED), y=f((64, 16, 4), (32, 128, 16), (1024, 64)))
case("cholesky_solve(y, a)", grad=False, a=s(*FACTORED), y=f((64, 16, 4), (32, 128, 16), (1024, 64)))
for function in "svdvals eigvalsh matrix_exp pinv".split():
    text = f"{function}(a * 0.01)" if function == "matrix_exp" else f"{function}(a)"
    case(text, grad=False, a=s((64, 16, 16), (16, 64, 64), (512, 512)))
case("cdist(x, y)", x=f((64, 16), (1000, 64), (4000, 128)), y=f((64, 16), (1000, 64), (4000, 128)))
case("cdist(x, y, 1.0)", name="cdist p=1", grad=False, x=f((64, 16), (1000, 64), (4000, 64)), y=f((64, 16), (1000, 64), (4000, 64)))
case("pdist(x)", x=f((64, 16), (500, 64), (2000, 64)))

# -------------------------------------------------------------------------------------------------------------- losses
chapter("loss")
CLASSES = [(64, 10), (4096, 1000), (8192, 32000)]
case("cross_entropy(x, k)", x=f(*CLASSES), k=i([10, 1000, 32000], (64,), (4096,), (8192,)))
case("cross_entropy(x, k)", name="cross_entropy of images", x=f((2, 10, 16, 16), (8, 21, 128, 128), (16, 21, 256, 256)),
     k=i([10, 21, 21], (2, 16, 16), (8, 128, 128), (16, 256, 256)))
case("nll_loss(x, k)", x=f(*CLASSES), k=i([10, 1000, 32000], (64,), (4096,), (8192,)))
case("multi_margin_loss(x, k)", x=f((64, 10), (4096, 1000), (8192, 1000)), k=i([10, 1000, 1000], (64,), (4096,), (8192,)))
for function in "mse_loss l1_loss smooth_l1_loss huber_loss poisson_nll_loss".split():
    case(f"{function}(x, y)", x=f(*SQUARES), y=p(*SQUARES))
case("soft_margin_loss(x, y)", x=f(*SQUARES), y=Input("e", SQUARES))
case("kl_div(x, y)", x=f(*SQUARES), y=p(*SQUARES))
case("binary_cross_entropy(x, y)", x=p(*SQUARES), y=p(*SQUARES))
case("binary_cross_entropy_with_logits(x, y)", x=f(*SQUARES), y=p(*SQUARES))
case("multilabel_soft_margin_loss(x, y)", x=f(*SQUARES), y=p(*SQUARES))
case("hinge_embedding_loss(x, y)", x=f(*SQUARES), y=Input("e", SQUARES))
case("margin_ranking_loss(x, y, z)", x=f(*SQUARES), y=f(*SQUARES), z=Input("e", SQUARES))
case("gaussian_nll_loss(x, y, v)", x=f(*SQUARES), y=f(*SQUARES), v=p(*SQUARES))
case("cosine_embedding_loss(x, y, z)", x=f(*SQUARES), y=f(*SQUARES), z=Input("e", [(128,), (1024,), (4096,)]))
case("triplet_margin_loss(x, y, z)", x=f(*SQUARES), y=f(*SQUARES), z=f(*SQUARES))
for function in "pairwise_distance cosine_similarity".split():
    case(f"{function}(x, y)", x=f(*SQUARES), y=f(*SQUARES))
case("normalize(x)", x=f(*SQUARES))

# -------------------------------------------------------------------------------------------------------------- layers
chapter("layer")
IMAGES = [(4, 16, 16, 16), (32, 64, 56, 56), (64, 128, 112, 112)]
case("conv2d(x, w, padding=1)", name="conv2d 3x3", x=f((4, 16, 16, 16), (8, 64, 56, 56), (32, 128, 56, 56)),
     w=f((16, 16, 3, 3), (64, 64, 3, 3), (128, 128, 3, 3)))
case("conv2d(x, w)", name="conv2d 1x1", x=f((4, 16, 16, 16), (8, 64, 56, 56), (32, 256, 56, 56)),
     w=f((16, 16, 1, 1), (64, 64, 1, 1), (64, 256, 1, 1)))
case("conv2d(x, w, stride=2, padding=3)", name="conv2d 7x7 stride 2", x=f((2, 3, 32, 32), (8, 3, 224, 224), (64, 3, 224, 224)),
     w=f((16, 3, 7, 7), (64, 3, 7, 7), (64, 3, 7, 7)))
case("conv2d(x, w, padding=1, groups={g})", name="conv2d depthwise", x=f((4, 16, 16, 16), (8, 64, 56, 56), (32, 128, 56, 56)),
     w=f((16, 1, 3, 3), (64, 1, 3, 3), (128, 1, 3, 3)), g=Input("n", [16, 64, 128]))
case("conv1d(x, w, padding=1)", x=f((4, 16, 64), (16, 64, 1024), (32, 256, 4096)), w=f((16, 16, 3), (64, 64, 3), (256, 256, 3)))
case("conv3d(x, w, padding=1)", x=f((1, 4, 8, 8, 8), (4, 16, 16, 16, 16), (8, 32, 32, 32, 32)),
     w=f((4, 4, 3, 3, 3), (16, 16, 3, 3, 3), (32, 32, 3, 3, 3)))
case("conv_transpose2d(x, w, stride=2)", x=f((4, 16, 8, 8), (8, 64, 28, 28), (32, 128, 28, 28)),
     w=f((16, 8, 2, 2), (64, 32, 2, 2), (128, 64, 2, 2)))
case("conv_transpose2d(x, w, stride=2, padding=1)", name="conv_transpose2d 4x4", x=f((4, 16, 8, 8), (8, 64, 28, 28), (32, 128, 28, 28)),
     w=f((16, 8, 4, 4), (64, 32, 4, 4), (128, 64, 4, 4)))
case("conv_transpose1d(x, w, stride=2)", grad=False, x=f((4, 16, 64), (16, 64, 512), (32, 256, 1024)),
     w=f((16, 16, 4), (64, 64, 4), (256, 128, 4)))
case("unfold(x, 3)", name="im2col", x=f((2, 8, 16, 16), (8, 32, 56, 56), (16, 64, 56, 56)))
case("fold(x, [{n}, {n}], 3)", name="col2im", x=f((2, 72, 196), (8, 288, 2916), (16, 576, 2916)), n=Input("n", [16, 56, 56]))
for function in "max_pool2d avg_pool2d".split():
    case(f"{function}(x, 2)", x=f(*IMAGES))
    case(f"{function}(x, 3, stride=2, padding=1)", x=f(*IMAGES))
case("max_pool1d(x, 2)", x=f((4, 16, 256), (32, 64, 4096), (64, 256, 8192)))
case("avg_pool1d(x, 2)", grad=False, x=f((4, 16, 256), (32, 64, 4096), (64, 256, 8192)))
case("max_pool3d(x, 2)", x=f((2, 4, 8, 16, 16), (4, 16, 16, 32, 32), (8, 32, 32, 64, 64)))
case("avg_pool3d(x, 2)", x=f((2, 4, 8, 16, 16), (4, 16, 16, 32, 32), (8, 32, 32, 64, 64)))
case("lp_pool2d(x, 2.0, 2)", grad=False, x=f(*IMAGES))
for function in "adaptive_avg_pool2d adaptive_max_pool2d".split():
    case(f"{function}(x, 1)", x=f(*IMAGES))
    case(f"{function}(x, 7)", x=f(*IMAGES))
case("adaptive_avg_pool1d(x, 8)", grad=False, x=f((4, 16, 256), (32, 64, 4096), (64, 256, 8192)))
for mode in "nearest bilinear bicubic".split():
    case(f'interpolate(x, scale_factor=2.0, mode="{mode}")', x=f((4, 16, 16, 16), (32, 64, 28, 28), (32, 64, 112, 112)))
case('interpolate(x, size=[100, 100], mode="area")', grad=False, x=f((2, 8, 128, 128), (16, 32, 128, 128), (32, 64, 256, 256)))
case('interpolate(x, size=[100, 100], mode="bilinear", antialias=True)', grad=False, x=f((2, 3, 128, 128), (16, 3, 256, 256), (64, 3, 512, 512)))
case("grid_sample(x, g, align_corners=False)", x=f((2, 8, 32, 32), (16, 32, 64, 64), (32, 64, 128, 128)),
     g=f((2, 32, 32, 2), (16, 64, 64, 2), (32, 128, 128, 2)))
case("affine_grid(t, [{n}, 3, 64, 64], align_corners=False)", grad=False, t=f((2, 2, 3), (32, 2, 3), (256, 2, 3)), n=Input("n", [2, 32, 256]))
case("pixel_shuffle(x, 2)", x=f(*IMAGES))
case("pixel_unshuffle(x, 2)", x=f(*IMAGES))
case("channel_shuffle(x, 4)", grad=False, x=f(*IMAGES))
TOKENS = [(8, 32, 64), (16, 256, 512), (32, 512, 1024)]
WIDTHS = [64, 512, 1024]
case("layer_norm(x, [{n}], w, c)", x=f(*TOKENS), w=f((64,), (512,), (1024,)), c=f((64,), (512,), (1024,)), n=Input("n", WIDTHS))
case("rms_norm(x, [{n}], w)", x=f(*TOKENS), w=f((64,), (512,), (1024,)), n=Input("n", WIDTHS))
case("group_norm(x, 8, w, c)", x=f(*IMAGES), w=f((16,), (64,), (128,)), c=f((16,), (64,), (128,)))
case("instance_norm(x)", x=f(*IMAGES))
case("batch_norm(x, None, None, w, c, True)", x=f(*IMAGES), w=f((16,), (64,), (128,)), c=f((16,), (64,), (128,)))
case("batch_norm(x, r, v, w, c)", name="batch_norm, evaluation", grad=False, x=f(*IMAGES), w=f((16,), (64,), (128,)), c=f((16,), (64,), (128,)),
     r=f((16,), (64,), (128,)), v=p((16,), (64,), (128,)))
case("local_response_norm(x, 5)", x=f(*IMAGES))
HEADS = [(2, 4, 32, 32), (8, 12, 256, 64), (8, 16, 1024, 64)]
for arguments in ["", ", is_causal=True"]:
    case(f"scaled_dot_product_attention(x, y, z{arguments})", x=f(*HEADS), y=f(*HEADS), z=f(*HEADS))
case("scaled_dot_product_attention(x, y, z, q)", name="attention with a mask", x=f(*HEADS), y=f(*HEADS), z=f(*HEADS),
     q=b((32, 32), (256, 256), (1024, 1024)))

# ------------------------------------------------------------------------------------------------------------- modules
chapter("module")
SEQUENCES = [(8, 16, 64), (32, 64, 256), (64, 128, 512)]
for name in "lstm gru rnn".split():
    case("m(x)[0]", name=name, x=f(*SEQUENCES), n=Input("n", [64, 256, 512]),
         module=(f"nn::{name}({{n}}, {{n}}, #{{batch_first: true}})", f"nn.{name.upper()}({{n}}, {{n}}, batch_first=True)"))
case("m(x)", name="transformer_encoder_layer", x=f(*SEQUENCES), n=Input("n", [64, 256, 512]),
     module=("nn::transformer_encoder_layer({n}, 8, #{dim_feedforward: 512, dropout: 0.0, batch_first: true})",
             "nn.TransformerEncoderLayer({n}, 8, 512, 0.0, batch_first=True)"))

# ------------------------------------------------------------------------------------------------------------- spectra
chapter("spectral")
SIGNALS = [(8, 1024), (64, 4096), (1024, 16384)]
case("fft.fft(complex(x, x))", grad=False, x=f(*SIGNALS))
case("fft.rfft(x)", grad=False, x=f(*SIGNALS))
case("fft.irfft(complex(x, x))", grad=False, x=f(*SIGNALS))
case("fft.fft2(complex(x, x))", grad=False, x=f((4, 64, 64), (16, 256, 256), (64, 512, 512)))
case("fft.rfft2(x)", grad=False, x=f((4, 64, 64), (16, 256, 256), (64, 512, 512)))
case("fft.rfft(x)", name="rfft of 1000", grad=False, x=f((8, 1000), (64, 1000), (4096, 1000)))
case("fft.fftshift(x)", grad=False, x=f(*SQUARES))
case("fft.ifft(complex(x, x))", grad=False, x=f(*SIGNALS))
case("fft.hfft(complex(x, x))", grad=False, x=f(*SIGNALS))
case("fft.ihfft(x)", grad=False, x=f(*SIGNALS))
PLANES = [(4, 64, 64), (16, 256, 256), (64, 512, 512)]
for function in "ifft2 irfft2 fftn ifftn irfftn".split():
    case(f"fft.{function}(complex(x, x))", grad=False, x=f(*PLANES))
case("fft.rfftn(x)", grad=False, x=f(*PLANES))
case("fft.ifftshift(x)", grad=False, x=f(*SQUARES))

# ------------------------------------------------------------------------------------------- the rest of the op table
chapter("rest")
for text in """empty_like(x) x.new_zeros([1000]) x.new_ones([1000]) x.new_empty([1000]) full_like(x,0.5)""".split():
    case(text.replace(",", ", "), grad=False, x=f(*SQUARES))
for dtype in "short char byte bool".split():
    case(f"x.{dtype}()", grad=False, name=f"f32 to {dtype}", x=p(*SQUARES))
case("x.cfloat()", grad=False, name="f32 to c64", x=f(*SQUARES))
case("x.type_as(y)", grad=False, x=f(*SQUARES), y=f((1,)))
case("x.index_copy(0, k, y)", grad=False, x=f(*TABLE), k=Input("u1", [(300,), (10000,), (60000,)]),
     y=f((300, 64), (10000, 128), (60000, 256)))
case("x.index_put([k, j], y)", grad=False, x=f(*SQUARES), k=Input("u", [(128,), (1024,), (4096,)]),
     j=Input("u", [(128,), (1024,), (4096,)]), y=f((128,), (1024,), (4096,)))
case("conv_transpose3d(x, w)", grad=False, x=f((1, 4, 8, 8, 8), (2, 16, 16, 16, 16), (4, 32, 32, 32, 32)),
     w=f((4, 4, 2, 2, 2), (16, 16, 2, 2, 2), (32, 32, 2, 2, 2)))
VOLUMES = [(2, 4, 8, 16, 16), (4, 16, 16, 32, 32), (8, 32, 32, 64, 64)]
case("adaptive_max_pool1d(x, 8)", grad=False, x=f((4, 16, 256), (32, 64, 4096), (64, 256, 8192)))
case("adaptive_max_pool3d(x, 4)", grad=False, x=f(*VOLUMES))
case("adaptive_avg_pool3d(x, 4)", grad=False, x=f(*VOLUMES))
case("lp_pool1d(x, 2.0, 2)", grad=False, x=f((4, 16, 256), (32, 64, 4096), (64, 256, 8192)))
case("x.mm(y)", grad=False, x=f(*MATRICES), y=f(*MATRICES))
case("x.mv(v)", grad=False, x=f(*SQUARES), v=f((128,), (1024,), (4096,)))
case("inner(x, y)", grad=False, x=f(*MATRICES), y=f(*MATRICES))
case("tensordot(x, y, 1)", grad=False, x=f(*MATRICES), y=f(*MATRICES))
case("multi_dot([x, y, x])", grad=False, x=f(*MATRICES), y=f(*MATRICES))
for function in "svd eigh cholesky_inverse cholesky_ex inv_ex lu_factor_ex matrix_rank geqrf".split():
    case(f"{function}(a)", grad=False, a=s((64, 16, 16), (16, 64, 64), (512, 512)))
case("lstsq(a, y)", grad=False, a=s((64, 16, 16), (16, 64, 64), (512, 512)), y=f((64, 16, 4), (16, 64, 4), (512, 16)))
case("vander(x)", grad=False, x=p((32,), (128,), (512,)))
case("multilabel_margin_loss(x, k)", grad=False, x=f((64, 10), (512, 100), (2048, 200)), k=i([10, 100, 200], (64, 10), (512, 100), (2048, 200)))
case("linear_cross_entropy(x, w, k)", grad=False, x=f((64, 32), (1024, 256), (4096, 512)), w=f((10, 32), (1000, 256), (32000, 512)),
     k=i([10, 1000, 32000], (64,), (1024,), (4096,)))
case("frexp(x)", grad=False, x=f(*SQUARES))
case("unravel_index(k, [100, 100])", grad=False, k=i(10000, *LINES))
case("randint_like(x, 100)", grad=False, x=f(*SQUARES))
case("x.clone().normal_()", grad=False, x=f(*SQUARES))
case("x.clone().random_()", grad=False, x=f(*SQUARES))
case("binomial((x * 10.0).floor(), y)", grad=False, x=p(*SQUARES), y=p(*SQUARES))
case("x.sum_to_size([1, 1])", grad=False, x=f(*SQUARES))
case("x.slice_scatter(y, 0, 0, 64)", grad=False, x=f(*SQUARES), y=f((64, 128), (64, 1024), (64, 4096)))
case("x.select_scatter(v, 0, 3)", grad=False, x=f(*SQUARES), v=f((128,), (1024,), (4096,)))
case("x.diagonal_scatter(v)", grad=False, x=f(*SQUARES), v=f((128,), (1024,), (4096,)))
for text in "permute_copy(x,[1,0]) expand_copy(r,[64,1024]) narrow_copy(x,0,0,64) transpose_copy(x,0,1) unfold_copy(x,1,16,8)".split():
    case(text.replace(",", ", "), grad=False, x=f(*SQUARES), r=f((1, 1024)))
case("diagflat(r)", grad=False, r=f((128,), (1024,), (4096,)))
case("rrelu(x)", grad=False, name="rrelu in evaluation", x=f(*SQUARES))

# Names of the op table that are in no case, and why.
NOT_TIMED = {
    "moves no data: a view": """select unsqueeze reshape view expand as_strided swapaxes swapdims adjoint movedim squeeze flatten ravel
        unflatten narrow diagonal expand_as view_as reshape_as broadcast_to broadcast_tensors atleast_1d atleast_2d atleast_3d
        squeeze_ unsqueeze_ swapaxes_ swapdims_ as_strided_ split split_with_sizes chunk tensor_split hsplit vsplit dsplit unbind
        real imag view_as_real conj resolve_conj resolve_neg unsafe_chunk unsafe_split unsafe_split_with_sizes""",
    "looks at a tensor's description only": "is_signed is_same_size is_nonzero type",
    "writes nothing": "empty new_empty",
    "another name, or another number of dimensions, of a case": """concatenate constant_pad_nd chain_matmul pinverse vdot grid_sampler
        grid_sampler_2d grid_sampler_3d upsample_nearest upsample_bilinear native_layer_norm native_group_norm native_batch_norm
        lp_pool3d as_strided_scatter as_strided_copy diagonal_copy select_copy squeeze_copy t_copy unsqueeze_copy view_copy split_copy
        split_with_sizes_copy unbind_copy alias_copy index_put_ new_full cdouble triu_indices matmul fft::hfft2 fft::ihfft2 fft::hfftn
        fft::ihfftn solve_ex lu_solve triangular_solve""",
    "draws other numbers than PyTorch does, at the cost of a case": """svd_lowrank pca_lowrank dropout1d dropout2d dropout3d feature_dropout alpha_dropout
        feature_alpha_dropout gumbel_softmax normal random fractional_max_pool2d fractional_max_pool3d""",
    "one number, or so few that only the call costs": """scalar_tensor fft::fftfreq fft::rfftfreq hamming_window blackman_window
        bartlett_window kaiser_window signal::windows::bartlett signal::windows::blackman signal::windows::cosine
        signal::windows::exponential signal::windows::gaussian signal::windows::general_cosine signal::windows::general_hamming
        signal::windows::hamming signal::windows::hann signal::windows::kaiser signal::windows::nuttall""",
    "its result or its arguments differ in form from PyTorch's": """eig eigvals nonzero_static max_unpool1d max_unpool2d max_unpool3d
        multi_head_attention_forward einsum addbmm lu_unpack tensorinv tensorsolve householder_product ormqr matrix_sqrth cond ctc_loss
        triplet_margin_with_distance_loss histogram histogramdd block_diag stft istft""",
}
