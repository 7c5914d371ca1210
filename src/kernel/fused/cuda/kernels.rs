//! The kernels around an element function: a map over vectors, a map through tiles in shared memory, reductions of rows and
//! of columns. Text only; `plan` decides which of them runs.

use super::space::Step;
use super::text::{Parts, memory_type};
use crate::kernel::abi::RawView;
use std::fmt::Write;

/// Words of the arguments of `ts_foreach` before the scalars: count, hold, word, bound.
pub(super) const EACH_HEAD: usize = 4;
/// Threads of a block.
pub(super) const BLOCK: u64 = 256;

/// Parameters of the text of a map or reduction, beside the program.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Form {
    /// Elements of a vector along the innermost dim.
    pub vector: u64,
    /// Vectors that a thread loads before it computes.
    pub unroll: u64,
    /// The step of each column along the innermost dim that threads iterate over; that of the position last.
    pub steps: Vec<Step>,
    /// Number of dims that remain, and of reduced dims.
    pub output_dims: usize,
    pub reduced: usize,
    /// Whether indices need 64 bits.
    pub wide: bool,
    /// Whether places in memory do, in elements from a view's first.
    pub far: bool,
}

/// The arguments: one struct of 64-bit words, in this order.
pub(super) fn args(parts: &Parts, views: usize, form: &Form) -> String {
    let or_one = |n: usize| n.max(1);
    let columns = views + 1;
    // Positions of reductions.
    let index = if form.wide { "ts_u64" } else { "ts_u32" };
    let place = if form.far { "ts_i64" } else { "int" };
    format!(
        "typedef {index} ts_index;\ntypedef {place} ts_place;\nstruct Args {{\n    ts_u64 n, m, lanes, chunk, scratch, tail, count, hold, word, bound;\n    char* p[{}];\n    ts_u64 s[{}];\n    \
         void* f[{}];\n    ts_u64 ksize[{k}], kdiv[{k}], rsize[{r}], rdiv[{r}];\n    \
         ts_i64 kstep[{columns}][{k}], rstep[{columns}][{r}];\n}};\n",
        or_one(views),
        or_one(parts.scalars.len()),
        or_one(parts.fallible),
        k = or_one(form.output_dims),
        r = or_one(form.reduced),
    )
}

/// Code that splits index `i` over `dims` dims and adds to `o{column}`; `prefix` is `k` or `r`. An index of the
/// innermost dim counts vectors; `steps`: of the columns along it, where they are known.
fn offsets(
    prefix: char,
    dims: usize,
    columns: &[usize],
    wide: bool,
    (vector, steps): (u64, &[Step]),
    indent: &str,
) -> String {
    let mut text = String::new();
    if dims == 0 {
        return text;
    }
    let word = if wide { "ts_u64" } else { "ts_u32" };
    let _ = writeln!(text, "{indent}{word} {prefix}left = ({word})i;");
    for dim in (0..dims).rev() {
        if dim == 0 {
            let _ = writeln!(text, "{indent}const ts_place {prefix}x0 = (ts_place){prefix}left;");
        } else {
            let quotient = if wide {
                format!("{prefix}left / g.{prefix}size[{dim}]")
            } else {
                format!("ts_fast_div({prefix}left, g.{prefix}div[{dim}])")
            };
            let _ = writeln!(text, "{indent}{word} {prefix}q{dim} = {quotient};");
            let _ = writeln!(
                text,
                "{indent}const ts_place {prefix}x{dim} = (ts_place)({prefix}left - {prefix}q{dim} * ({word})g.{prefix}size[{dim}]); \
                 {prefix}left = {prefix}q{dim};"
            );
        }
        let last = dim + 1 == dims;
        let times = if last && vector > 1 { format!(" * {vector}") } else { String::new() };
        for &column in columns {
            let step = match steps.get(column).filter(|_| last) {
                Some(Step::Zero) => continue,
                Some(Step::Unit) => String::new(),
                _ => format!(" * (ts_place)g.{prefix}step[{column}][{dim}]"),
            };
            let _ = writeln!(text, "{indent}o{column} += {prefix}x{dim}{times}{step};");
        }
    }
    text
}

fn pointer(slot: usize, views: &[RawView]) -> String {
    format!("(({}*)g.p[{slot}])", memory_type(views[slot].dtype))
}

/// Whether vectors of a slot are loaded as words (`ts_raw`) and taken apart where they are used: the compiler would convert
/// elements of less than four bytes as they arrive, and hold twice the registers.
fn is_raw(slot: usize, views: &[RawView], step: Step, vector: u64) -> bool {
    let size = views[slot].dtype.size_bytes() as u64;
    step == Step::Unit && size < 4 && size * vector >= 4
}

/// The vectors that a thread has in flight, `x{slot}[u]`.
fn vectors(parts: &Parts, views: &[RawView], steps: &[Step], v: u64, u: u64, indent: &str) -> String {
    let mut text = String::new();
    for &slot in &parts.loads {
        let kind = if is_raw(slot, views, steps[slot], v) { "ts_raw" } else { "ts_vec" };
        let _ = writeln!(text, "{indent}{kind}<{}, {v}> x{slot}[{u}];", memory_type(views[slot].dtype));
    }
    text
}

/// Behind all loads: none waits for what is computed with another.
fn in_flight(parts: &Parts, views: &[RawView], steps: &[Step], v: u64, u: u64, indent: &str) -> String {
    let mut text = String::new();
    for &slot in parts.loads.iter().filter(|&&slot| is_raw(slot, views, steps[slot], v)) {
        let _ =
            writeln!(text, "{indent}_Pragma(\"unroll\") for (int u = 0; u < {u}; u++) x{slot}[u].keep_in_flight();");
    }
    text
}

/// The vectors that are loaded as words, as elements `w{slot}`, and the lines that hand element `v` to the program.
fn elements(parts: &Parts, views: &[RawView], steps: &[Step], v: u64) -> [String; 2] {
    let (mut taken, mut handed) = (String::new(), String::new());
    for &slot in &parts.loads {
        let memory = memory_type(views[slot].dtype);
        if is_raw(slot, views, steps[slot], v) {
            let _ = writeln!(taken, "            const ts_vec<{memory}, {v}> w{slot} = x{slot}[u].get();");
            let _ = writeln!(handed, "                in.a{slot} = w{slot}.x[v];");
        } else {
            let _ = writeln!(handed, "                in.a{slot} = x{slot}[u].x[v];");
        }
    }
    [taken, handed]
}

/// Loads the vector of a slot from offset `o{slot}` into `x{slot}`, according to its step. `inner` is the step of one
/// element along the innermost dim.
fn load(slot: usize, views: &[RawView], form: &Form, target: &str, inner: &str) -> String {
    let (at, memory) = (pointer(slot, views), memory_type(views[slot].dtype));
    let v = form.vector;
    match form.steps[slot] {
        Step::Unit if is_raw(slot, views, Step::Unit, v) => format!("{target}.load({at} + o{slot});"),
        Step::Unit => format!("{target} = *(const ts_vec<{memory}, {v}>*)({at} + o{slot});"),
        Step::Zero => {
            format!(
                "{{ {memory} y = {at}[o{slot}]; _Pragma(\"unroll\") for (int v = 0; v < {v}; v++) {target}.x[v] = y; }}"
            )
        }
        Step::Any => {
            format!("_Pragma(\"unroll\") for (int v = 0; v < {v}; v++) {target}.x[v] = {at}[o{slot} + v * {inner}];")
        }
        Step::Pair(between) => format!(
            "{{ const ts_vec<{memory}, {}> z = *(const ts_vec<{memory}, {}>*)({at} + o{slot}); _Pragma(\"unroll\") \
             for (int v = 0; v < {v}; v++) {{ {target}.x[v] = z.x[2 * v]; x{between}[u].x[v] = z.x[2 * v + 1]; }} }}",
            2 * v,
            2 * v
        ),
        Step::Between => String::new(),
    }
}

/// The position of element `v` of a vector. Random numbers come four from one counter: where the compiler sees that the
/// positions of a vector share it, it makes them once.
fn position(parts: &Parts, form: &Form, views: usize, inner: &str) -> String {
    match form.steps[views] {
        Step::Unit if parts.random && form.vector > 1 => {
            format!("((ts_u64)o{views} & ~{}ULL | (ts_u64)v)", form.vector - 1)
        }
        Step::Unit => format!("(ts_u64)(o{views} + v)"),
        Step::Zero => format!("(ts_u64)o{views}"),
        _ => format!("(ts_u64)(o{views} + v * {inner})"),
    }
}

/// Columns whose offsets a kernel computes.
fn columns(parts: &Parts, views: &[RawView], results: bool) -> Vec<usize> {
    let mut columns: Vec<usize> = parts.loads.iter().chain(&parts.stores).copied().collect();
    if results {
        columns.extend(parts.result_slots());
    }
    if parts.positions {
        columns.push(views.len());
    }
    columns.sort_unstable();
    columns.dedup();
    columns
}

fn declare(columns: &[usize], indent: &str) -> String {
    let list: Vec<String> = columns.iter().map(|column| format!("o{column} = 0")).collect();
    if list.is_empty() { String::new() } else { format!("{indent}ts_place {};\n", list.join(", ")) }
}

/// The code for one vector: the element function for each lane, then stores. Loads are in `{slot}` arrays.
fn compute(
    parts: &Parts,
    views: &[RawView],
    form: &Form,
    inner: &dyn Fn(usize) -> String,
    at: &str,
    acc: &str,
) -> String {
    let mut text = String::new();
    let v = form.vector;
    for &slot in &parts.stores {
        let _ = writeln!(text, "            ts_vec<{}, {v}> y{slot};", memory_type(views[slot].dtype));
    }
    let [taken, handed] = elements(parts, views, &form.steps, v);
    let _ = writeln!(text, "{taken}            _Pragma(\"unroll\") for (int v = 0; v < {v}; v++) {{");
    let _ = writeln!(text, "                In in; Out out;\n{handed}");
    let pos = if parts.positions { position(parts, form, views.len(), &inner(views.len())) } else { "0".to_string() };
    let _ = writeln!(text, "                element(g, in, {pos}, {at}, out, {acc});");
    for &slot in &parts.stores {
        let _ = writeln!(text, "                y{slot}.x[v] = out.a{slot};");
    }
    let _ = writeln!(text, "            }}");
    for &slot in &parts.stores {
        let (at, memory) = (pointer(slot, views), memory_type(views[slot].dtype));
        let line = match form.steps[slot] {
            Step::Unit => format!("*(ts_vec<{memory}, {v}>*)({at} + o{slot}) = y{slot};"),
            Step::Pair(between) => format!(
                "{{ ts_vec<{memory}, {}> z; _Pragma(\"unroll\") for (int v = 0; v < {v}; v++) {{ z.x[2 * v] = y{slot}.x[v]; \
                 z.x[2 * v + 1] = y{between}.x[v]; }} *(ts_vec<{memory}, {}>*)({at} + o{slot}) = z; }}",
                2 * v,
                2 * v
            ),
            Step::Between => continue,
            _ => format!(
                "_Pragma(\"unroll\") for (int v = 0; v < {v}; v++) {at}[o{slot} + v * {}] = y{slot}.x[v];",
                inner(slot)
            ),
        };
        let _ = writeln!(text, "            {line}");
    }
    text
}

/// `ts_map`: each thread processes `unroll` vectors, at a distance of one block. Elements past the last whole vector
/// (`g.tail`, only with one dim) are processed one by one.
pub(super) fn map(parts: &Parts, views: &[RawView], form: &Form) -> String {
    let (u, v, k) = (form.unroll, form.vector, form.output_dims);
    let cols = columns(parts, views, false);
    let inner = |column: usize| if k == 0 { "0".to_string() } else { format!("g.kstep[{column}][{}]", k - 1) };
    let mut text = String::new();
    let _ = writeln!(
        text,
        "TS_KERNEL void __launch_bounds__({BLOCK}) ts_map(const __grid_constant__ Args g) {{\n    if (ts_held(g.hold, g.word, g.bound)) return;"
    );
    let _ = writeln!(text, "    const ts_u64 first = (ts_u64)blockIdx.x * {} + threadIdx.x;", BLOCK * u);
    let _ = writeln!(text, "    Acc none;");
    text.push_str(&vectors(parts, views, &form.steps, v, u, "    "));
    let walk = |body: &str| {
        format!(
            "    _Pragma(\"unroll\") for (int u = 0; u < {u}; u++) {{\n        ts_u64 i = first + u * {BLOCK};\n        \
             if (i < g.n) {{\n{}{}{body}        }}\n    }}\n",
            declare(&cols, "            "),
            offsets('k', k, &cols, form.wide, (v, &form.steps), "            "),
        )
    };
    let mut loads = String::new();
    for &slot in &parts.loads {
        let _ = writeln!(loads, "            {}", load(slot, views, form, &format!("x{slot}[u]"), &inner(slot)));
    }
    if !loads.is_empty() {
        text.push_str(&walk(&loads));
        text.push_str(&in_flight(parts, views, &form.steps, v, u, "    "));
    }
    text.push_str(&walk(&compute(parts, views, form, &inner, "0", "none")));
    if v > 1 && k == 1 {
        let _ = writeln!(text, "    if (first < g.tail) {{\n        ts_i64 i = (ts_i64)(g.n * {v} + first);");
        let _ = writeln!(text, "        In in; Out out;");
        let at = |column: usize| match form.steps[column] {
            Step::Zero => "0".to_string(),
            Step::Unit => "i".to_string(),
            _ => format!("i * {}", inner(column)),
        };
        for &slot in &parts.loads {
            let _ = writeln!(text, "        in.a{slot} = {}[{}];", pointer(slot, views), at(slot));
        }
        let _ = writeln!(text, "        element(g, in, (ts_u64)({}), 0, out, none);", at(views.len()));
        for &slot in &parts.stores {
            let _ = writeln!(text, "        {}[{}] = out.a{slot};", pointer(slot, views), at(slot));
        }
        text.push_str("    }\n");
    }
    text.push_str("}\n");
    text
}

/// `ts_map_tiled`: loads that are dense along dim `output_dims - 2`, while the others are dense along the last, go through tiles in
/// shared memory, of `across` elements of the last dim by `down` of that one.
pub(super) fn tiles(
    parts: &Parts,
    views: &[RawView],
    form: &Form,
    crossing: &[usize],
    [across, down]: [u64; 2],
) -> String {
    let cols = columns(parts, views, false);
    let (x, y) = (form.output_dims - 1, form.output_dims - 2);
    let rounds = across * down / BLOCK;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "TS_KERNEL void __launch_bounds__({BLOCK}) ts_map_tiled(const __grid_constant__ Args g) {{\n    if (ts_held(g.hold, g.word, g.bound)) return;"
    );
    for &slot in crossing {
        let _ = writeln!(text, "    __shared__ {} t{slot}[{down}][{}];", memory_type(views[slot].dtype), across + 1);
    }
    let _ = writeln!(text, "    ts_u64 i = blockIdx.x;");
    let _ = writeln!(
        text,
        "    const ts_u64 across = (g.ksize[{x}] + {}) / {across}, down = (g.ksize[{y}] + {}) / {down};",
        across - 1,
        down - 1
    );
    let _ = writeln!(text, "    const ts_i64 left = (ts_i64)(i % across) * {across}; i /= across;");
    let _ = writeln!(text, "    const ts_i64 top = (ts_i64)(i % down) * {down}; i /= down;");
    text.push_str(&declare(&cols, "    "));
    text.push_str(&offsets('k', y, &cols, true, (1, &[]), "    "));
    for &slot in crossing {
        let memory = memory_type(views[slot].dtype);
        let _ = writeln!(text, "    {{\n        {memory} r[{rounds}];");
        let _ = writeln!(
            text,
            "        _Pragma(\"unroll\") for (int k = 0; k < {rounds}; k++) {{\n            ts_i64 ty = top + threadIdx.x % {down}, tx = left + threadIdx.x / {down} + k * {};\n            if (ty < g.ksize[{y}] && tx < g.ksize[{x}]) r[k] = {}[o{slot} + ty + tx * g.kstep[{slot}][{x}]];\n        }}",
            BLOCK / down,
            pointer(slot, views)
        );
        let _ = writeln!(
            text,
            "        _Pragma(\"unroll\") for (int k = 0; k < {rounds}; k++) t{slot}[threadIdx.x % {down}][threadIdx.x / {down} + k * {}] = r[k];\n    }}",
            BLOCK / down
        );
    }
    let _ = writeln!(text, "    __syncthreads();\n    Acc none;");
    let _ = writeln!(text, "    _Pragma(\"unroll\") for (int k = 0; k < {rounds}; k++) {{");
    let _ = writeln!(
        text,
        "        const int sx = threadIdx.x % {across}, sy = threadIdx.x / {across} + k * {};\n        ts_i64 tx = left + sx, ty = top + sy;",
        BLOCK / across
    );
    let _ = writeln!(text, "        if (tx < g.ksize[{x}] && ty < g.ksize[{y}]) {{\n            In in; Out out;");
    let at = |column: usize| format!("o{column} + ty * g.kstep[{column}][{y}] + tx * g.kstep[{column}][{x}]");
    for &slot in &parts.loads {
        let value = if crossing.contains(&slot) {
            format!("t{slot}[sy][sx]")
        } else {
            format!("{}[{}]", pointer(slot, views), at(slot))
        };
        let _ = writeln!(text, "            in.a{slot} = {value};");
    }
    let pos = if parts.positions { at(views.len()) } else { "0".to_string() };
    let _ = writeln!(text, "            element(g, in, (ts_u64)({pos}), 0, out, none);");
    for &slot in &parts.stores {
        let _ = writeln!(text, "            {}[{}] = out.a{slot};", pointer(slot, views), at(slot));
    }
    text.push_str("        }\n    }\n}\n");
    text
}

/// Writes an accumulator's results, and what the epilogue makes of them, to the views, at offsets `o{slot}` plus
/// `plus(slot)`.
fn results(parts: &Parts, views: &[RawView], acc: &str, plus: &dyn Fn(usize) -> String, indent: &str) -> String {
    let mut text = String::new();
    let place = |slot: usize| format!("{}[o{slot}{}]", pointer(slot, views), plus(slot));
    let (reads, unread) = match &parts.epilogue {
        Some(epilogue) => (&epilogue.results[..], &epilogue.unread[..]),
        None => (&[][..], &[][..]),
    };
    if parts.epilogue.is_some() {
        let _ = writeln!(text, "{indent}Results made;");
    }
    for task in &parts.tasks {
        let slot = task.slot;
        let value = format!("ts_downcast<{}>({acc}.{})", memory_type(views[slot].dtype), task.result);
        if reads.contains(&slot) {
            let _ = writeln!(text, "{indent}made.a{slot} = {value};");
        }
        if !unread.contains(&slot) {
            let _ = writeln!(text, "{indent}{} = {value};", place(slot));
        }
    }
    if let Some(epilogue) = &parts.epilogue {
        for &slot in &epilogue.loads {
            let _ = writeln!(text, "{indent}made.a{slot} = {};", place(slot));
        }
        let _ = writeln!(text, "{indent}epilogue(g, made, made);");
        for &slot in &epilogue.stores {
            let _ = writeln!(text, "{indent}{} = made.a{slot};", place(slot));
        }
    }
    text
}

/// `ts_reduce_rows`: `g.lanes` threads reduce the part `blockIdx.y` of a row, `g.chunk` vectors; they write results, or
/// partials if there are several parts, which `closed` merges.
pub(super) fn rows(parts: &Parts, views: &[RawView], form: &Form) -> String {
    let (u, v, r) = (form.unroll, form.vector, form.reduced);
    let cols = columns(parts, views, true);
    let walked = columns(parts, views, false);
    let inner = |column: usize| if r == 0 { "0".to_string() } else { format!("g.rstep[{column}][{}]", r - 1) };
    let mut text = String::new();
    let _ = writeln!(
        text,
        "TS_KERNEL void __launch_bounds__({BLOCK}) ts_reduce_rows(const __grid_constant__ Args g) {{\n    if (ts_held(g.hold, g.word, g.bound)) return;"
    );
    let _ = writeln!(text, "    __shared__ Acc shared[{}];", BLOCK / 32);
    let _ = writeln!(text, "    const ts_u64 row = (ts_u64)blockIdx.x * ({BLOCK} / g.lanes) + threadIdx.x / g.lanes;");
    let _ = writeln!(text, "    const ts_u64 lane = threadIdx.x % g.lanes;");
    text.push_str(&declare(&cols, "    "));
    let _ = writeln!(text, "    if (row < g.m) {{\n        const ts_u64 i = row;");
    text.push_str(&offsets('k', form.output_dims, &cols, form.wide, (1, &[]), "        "));
    text.push_str("    }\n");
    let _ = writeln!(
        text,
        "    const ts_u64 begin = blockIdx.y * g.chunk, end = row < g.m ? min(g.n, begin + g.chunk) : 0;"
    );
    let _ = writeln!(text, "    Acc acc[{v}];\n    _Pragma(\"unroll\") for (int v = 0; v < {v}; v++) acc[v].init();");
    let _ = writeln!(text, "    for (ts_u64 from = begin + lane; from < end; from += g.lanes * {u}) {{");
    text.push_str(&vectors(parts, views, &form.steps, v, u, "        "));
    walk_reduced(&mut text, parts, views, form, &walked, &inner, LANES);
    text.push_str("    }\n");
    let _ = writeln!(text, "    _Pragma(\"unroll\") for (int v = 1; v < {v}; v++) acc[0].merge(acc[v]);");
    let _ = writeln!(text, "    ts_group_reduce(acc[0], (int)g.lanes, shared);");
    let _ = writeln!(text, "    if (lane == 0 && row < g.m) {{");
    let _ =
        writeln!(text, "        if (g.scratch) ((Acc*)g.scratch)[blockIdx.y * g.m + row] = acc[0];\n        else {{");
    text.push_str(&results(parts, views, "acc[0]", &|_| String::new(), "            "));
    text.push_str("        }\n    }\n");
    closed(text, &close_rows(parts, views, form))
}

/// `ts_foreach`: a program over the tensors of a list (as PyTorch's multi_tensor_apply). A block belongs to one tensor, found
/// by the index of its first block, and processes `unroll` vectors a thread; its first block processes the elements past the
/// last whole vector. `columns` names the pointer of each slot.
pub(super) fn each(parts: &Parts, views: &[RawView], shape: &EachShape, columns: &[usize], steps: &[Step]) -> String {
    let EachShape { vector: v, unroll: u, capacity, .. } = *shape;
    let mut text = String::new();
    let at = |slot: usize| format!("(({}*)g.p[m][{}])", memory_type(views[slot].dtype), columns[slot]);
    let index = |slot: usize, i: &str| if steps[slot] == Step::Zero { "0".to_string() } else { i.to_string() };
    let _ = writeln!(text, "TS_KERNEL void __launch_bounds__({BLOCK}) ts_foreach(const __grid_constant__ Args g) {{");
    let _ = writeln!(text, "    if (ts_held(g.hold, g.word, g.bound)) return;\n    int m = 0;");
    let _ = writeln!(
        text,
        "    for (int d = {}; d > 0; d /= 2) if (m + d < (int)g.count && blockIdx.x >= g.first[m + d]) m += d;",
        capacity / 2
    );
    let _ = writeln!(text, "    const ts_u64 n = g.n[m], block = blockIdx.x - g.first[m];\n    Acc none;");
    text.push_str(&vectors(parts, views, steps, v, u, "    "));
    let round = |body: &str| {
        format!(
            "    _Pragma(\"unroll\") for (int u = 0; u < {u}; u++) {{\n        \
             const ts_u64 i = (block * {u} + u) * {BLOCK} + threadIdx.x;\n        if (i < n / {v}) {{\n{body}        }}\n    }}\n"
        )
    };
    let mut loads = String::new();
    for &slot in &parts.loads {
        let memory = memory_type(views[slot].dtype);
        let line = if steps[slot] == Step::Zero {
            format!("for (int v = 0; v < {v}; v++) x{slot}[u].x[v] = {}[0];", at(slot))
        } else if is_raw(slot, views, steps[slot], v) {
            format!("x{slot}[u].load({} + i * {v});", at(slot))
        } else {
            format!("x{slot}[u] = ((const ts_vec<{memory}, {v}>*){})[i];", at(slot))
        };
        let _ = writeln!(loads, "            {line}");
    }
    text.push_str(&round(&loads));
    text.push_str(&in_flight(parts, views, steps, v, u, "    "));
    let mut body = String::new();
    for &slot in &parts.stores {
        let _ = writeln!(body, "            ts_vec<{}, {v}> y{slot};", memory_type(views[slot].dtype));
    }
    let [taken, handed] = elements(parts, views, steps, v);
    let _ = writeln!(
        body,
        "{taken}            _Pragma(\"unroll\") for (int v = 0; v < {v}; v++) {{\n                In in; Out out;\n{handed}"
    );
    let _ = writeln!(body, "                element(g, in, 0, 0, out, none);");
    for &slot in &parts.stores {
        let _ = writeln!(body, "                y{slot}.x[v] = out.a{slot};");
    }
    let _ = writeln!(body, "            }}");
    for &slot in &parts.stores {
        let memory = memory_type(views[slot].dtype);
        let _ = writeln!(body, "            ((ts_vec<{memory}, {v}>*){})[i] = y{slot};", at(slot));
    }
    text.push_str(&round(&body));
    if v > 1 {
        let _ = writeln!(text, "    const ts_u64 i = n / {v} * {v} + threadIdx.x;\n    if (block == 0 && i < n) {{");
        let _ = writeln!(text, "        In in; Out out;");
        for &slot in &parts.loads {
            let _ = writeln!(text, "        in.a{slot} = {}[{}];", at(slot), index(slot, "i"));
        }
        let _ = writeln!(text, "        element(g, in, 0, 0, out, none);");
        for &slot in &parts.stores {
            let _ = writeln!(text, "        {}[i] = out.a{slot};", at(slot));
        }
        text.push_str("    }\n");
    }
    text.push_str("}\n");
    text
}

/// Parameters of the text of a step over many tensors, beside the program.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct EachShape {
    /// Elements of a vector.
    pub vector: u64,
    pub unroll: u64,
    /// Tensors of one launch at most, a power of two.
    pub capacity: usize,
    pub columns: usize,
    pub scalars: usize,
}

impl EachShape {
    /// The arguments: one struct of 64-bit words, in this order.
    pub fn args(&self) -> String {
        let EachShape { capacity, columns, scalars, .. } = self;
        format!(
            "struct Args {{\n    ts_u64 count, hold, word, bound;\n    ts_u64 s[{scalars}];\n    ts_u64 n[{capacity}];\n    \
             ts_u64 first[{capacity}];\n    char* p[{capacity}][{columns}];\n}};\n"
        )
    }

    pub fn words(&self) -> usize {
        EACH_HEAD + self.scalars + self.capacity * (2 + self.columns)
    }
}

/// Distance between the vectors of a thread in `ts_reduce_rows`.
const LANES: &str = "g.lanes";

/// The loop over `unroll` vectors of the reduced space: loads first, then values.
fn walk_reduced(
    text: &mut String,
    parts: &Parts,
    views: &[RawView],
    form: &Form,
    walked: &[usize],
    inner: &dyn Fn(usize) -> String,
    stride: &str,
) {
    let u = form.unroll;
    let index = format!("from + u * {stride}");
    // Along a row the elements of a vector are positions of one row; across rows they belong to different rows.
    let row = stride == LANES;
    let (along, steps): (u64, &[Step]) = if row { (form.vector, &form.steps) } else { (1, &[]) };
    let saved: String = walked.iter().map(|c| format!(", o{c} = b{c}")).collect();
    let saved = saved.trim_start_matches(", ").to_string();
    let enter = |body: &str| {
        let declared = if saved.is_empty() { String::new() } else { format!("            ts_place {saved};\n") };
        format!(
            "        _Pragma(\"unroll\") for (int u = 0; u < {u}; u++) {{\n        const ts_u64 i = {index};\n        \
             if (i < end) {{\n{declared}{}{body}        }}\n        }}\n",
            offsets('r', form.reduced, walked, form.wide, (along, steps), "            "),
        )
    };
    for column in walked {
        let _ = writeln!(text, "        const ts_place b{column} = o{column};");
    }
    let mut loads = String::new();
    for &slot in &parts.loads {
        let _ = writeln!(loads, "            {}", load(slot, views, form, &format!("x{slot}[u]"), &inner(slot)));
    }
    if !loads.is_empty() {
        text.push_str(&enter(&loads));
        text.push_str(&in_flight(parts, views, &form.steps, form.vector, u, "        "));
    }
    let at = if row { format!("(ts_i64)(i * {} + v)", form.vector) } else { "(ts_i64)i".to_string() };
    text.push_str(&enter(&compute(parts, views, form, inner, &at, "acc[v]")));
}

/// `ts_reduce_columns`: 32 by 8 threads; each has a vector of columns and every eighth row of its part.
pub(super) fn columns_kernel(parts: &Parts, views: &[RawView], form: &Form) -> String {
    let (u, v, k) = (form.unroll, form.vector, form.output_dims);
    let cols = columns(parts, views, true);
    let walked = columns(parts, views, false);
    let inner = |column: usize| if k == 0 { "0".to_string() } else { format!("g.kstep[{column}][{}]", k - 1) };
    let mut text = String::new();
    let _ = writeln!(
        text,
        "TS_KERNEL void __launch_bounds__({BLOCK}) ts_reduce_columns(const __grid_constant__ Args g) {{\n    if (ts_held(g.hold, g.word, g.bound)) return;"
    );
    let _ = writeln!(text, "    __shared__ Acc shared[8][32];");
    let _ = writeln!(text, "    const ts_u64 column = (ts_u64)blockIdx.x * 32 + threadIdx.x % 32;");
    let _ = writeln!(text, "    const int y = threadIdx.x / 32;");
    text.push_str(&declare(&cols, "    "));
    let _ = writeln!(text, "    if (column < g.m) {{\n        const ts_u64 i = column;");
    text.push_str(&offsets('k', k, &cols, form.wide, (v, &form.steps), "        "));
    text.push_str("    }\n");
    let _ = writeln!(
        text,
        "    const ts_u64 begin = blockIdx.y * g.chunk, end = column < g.m ? min(g.n, begin + g.chunk) : 0;"
    );
    let _ = writeln!(text, "    Acc acc[{v}];\n    _Pragma(\"unroll\") for (int v = 0; v < {v}; v++) acc[v].init();");
    let _ = writeln!(text, "    for (ts_u64 from = begin + y; from < end; from += 8 * {u}) {{");
    text.push_str(&vectors(parts, views, &form.steps, v, u, "        "));
    walk_reduced(&mut text, parts, views, form, &walked, &inner, "8");
    text.push_str("    }\n");
    let _ = writeln!(text, "    _Pragma(\"unroll\") for (int v = 0; v < {v}; v++) {{");
    let _ = writeln!(
        text,
        "        __syncthreads();\n        shared[y][threadIdx.x % 32] = acc[v];\n        __syncthreads();"
    );
    let _ = writeln!(text, "        if (y == 0 && column < g.m) {{");
    let _ = writeln!(text, "            for (int k = 1; k < 8; k++) acc[v].merge(shared[k][threadIdx.x]);");
    let _ = writeln!(
        text,
        "            if (g.scratch) ((Acc*)g.scratch)[(blockIdx.y * g.m + column) * {v} + v] = acc[v];\n            else {{"
    );
    text.push_str(&results(parts, views, "acc[v]", &|slot| format!(" + v * {}", inner(slot)), "                "));
    text.push_str("            }\n        }\n    }\n");
    closed(text, &close_columns(parts, views, form))
}

/// The text of a reduction in parts. Of the blocks with the same `blockIdx.x`, the last to finish merges the partials,
/// if `g.count` has a counter for them; else the separate launch `ts_reduce_finish` does. The order of merges is the
/// same in both cases.
fn closed(text: String, close: &str) -> String {
    let finish = format!(
        "TS_KERNEL void __launch_bounds__({BLOCK}) ts_reduce_finish(const __grid_constant__ Args g) {{\n    \
         if (ts_held(g.hold, g.word, g.bound)) return;\n    ts_merge_partials(g, g.n);\n}}\n"
    );
    // atomicInc resets the counter when the last block has counted.
    let last = "    if (!g.count) return;\n    __shared__ bool last;\n    __threadfence();\n    __syncthreads();\n    \
         if (threadIdx.x == 0) last = atomicInc((ts_u32*)g.count + blockIdx.x, gridDim.y - 1) == gridDim.y - 1;\n    \
         __syncthreads();\n    if (!last) return;\n    __threadfence();\n    ts_merge_partials(g, gridDim.y);\n}\n";
    format!("{close}{text}{last}{finish}")
}

/// `ts_merge_partials`: the lanes of a row merge its partials, which have a stride of `g.m`.
fn close_rows(parts: &Parts, views: &[RawView], form: &Form) -> String {
    let slots = parts.result_slots();
    let mut text = "TS_FN void ts_merge_partials(const Args& g, ts_u64 parts) {\n".to_string();
    let _ = writeln!(text, "    __shared__ Acc shared[{}];", BLOCK / 32);
    let _ = writeln!(text, "    const ts_u64 row = (ts_u64)blockIdx.x * ({BLOCK} / g.lanes) + threadIdx.x / g.lanes;");
    let _ = writeln!(text, "    const ts_u64 lane = threadIdx.x % g.lanes;\n    Acc acc;\n    acc.init();");
    let _ = writeln!(
        text,
        "    if (row < g.m)\n        for (ts_u64 part = lane; part < parts; part += g.lanes) \
         acc.merge(ts_load_partial((const Acc*)g.scratch + part * g.m + row));"
    );
    let _ = writeln!(text, "    ts_group_reduce(acc, (int)g.lanes, shared);");
    let _ = writeln!(text, "    if (lane == 0 && row < g.m) {{\n        const ts_u64 i = row;");
    text.push_str(&declare(&slots, "        "));
    text.push_str(&offsets('k', form.output_dims, &slots, form.wide, (1, &[]), "        "));
    text.push_str(&results(parts, views, "acc", &|_| String::new(), "        "));
    text.push_str("    }\n}\n");
    text
}

/// `ts_merge_partials`: a thread merges the partials of a column, which have a stride of `g.m` vectors.
fn close_columns(parts: &Parts, views: &[RawView], form: &Form) -> String {
    let slots = parts.result_slots();
    let (v, k) = (form.vector, form.output_dims);
    let mut text = "TS_FN void ts_merge_partials(const Args& g, ts_u64 parts) {\n".to_string();
    let _ = writeln!(text, "    for (ts_u64 r = threadIdx.x; r < {}; r += {BLOCK}) {{", 32 * v);
    let _ = writeln!(text, "        const ts_u64 i = (ts_u64)blockIdx.x * 32 + r / {v};\n        if (i >= g.m) break;");
    let _ = writeln!(text, "        Acc acc;\n        acc.init();");
    let _ = writeln!(
        text,
        "        _Pragma(\"unroll 8\") for (ts_u64 part = 0; part < parts; part++) \
         acc.merge(ts_load_partial((const Acc*)g.scratch + (part * g.m + i) * {v} + r % {v}));"
    );
    text.push_str(&declare(&slots, "        "));
    text.push_str(&offsets('k', k, &slots, form.wide, (v, &form.steps), "        "));
    let inner = |slot: usize| match k {
        0 => String::new(),
        _ => format!(" + (ts_i64)(r % {v}) * g.kstep[{slot}][{}]", k - 1),
    };
    text.push_str(&results(parts, views, "acc", &inner, "        "));
    text.push_str("    }\n}\n");
    text
}
