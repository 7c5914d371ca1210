//! `show(x)` and `plot(y)`: pictures and curves in the terminal, or in a file with `#{file: "x.png"}`.
//!
//! Converts the values here; `raster`, `chart` and `terminal` draw them.

use crate::base::code;
use crate::base::diag::{Diag, Focus, Result};
use crate::base::dtype::DType;
use crate::base::span::Origin;
use crate::fail;
use crate::files;
use crate::script::bind::native::{self, flag, given, native};
use crate::script::bind::rows::Natives;
use crate::script::draw::chart::{Chart, Curve, Mark};
use crate::script::draw::raster::Raster;
use crate::script::draw::terminal;
use crate::script::host::Host;
use crate::script::tensor_api::storage;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::observe;
use rhai::{Array, Dynamic};
use std::path::PathBuf;
use std::sync::Arc;

/// Pixels of a chart in a file, and in a terminal with pictures.
const CHART: (usize, usize) = (800, 500);
/// Bound: elements of a picture or a chart that are read.
const MAX_ELEMENTS: usize = 64 << 20;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    native(module, host, "show", |host, _, [image, file]| {
        let picture = picture(host, image)?;
        deliver(host, &picture, file, |terminal| terminal::picture(&picture, terminal))
    });
    native(module, host, "plot", |host, _, [x, y, file, points, title]| {
        let mark = if flag("points", points)? { Mark::Points } else { Mark::Line };
        let chart = chart(host, x, given(y), mark, native::text("title", title)?)?;
        let picture = chart.raster(CHART.0, CHART.1);
        deliver(host, &picture, file, |terminal| {
            if terminal.has_pictures() { terminal::picture(&picture, terminal) } else { chart.text(terminal) }
        })
    });
}

fn wrong(text: String) -> Box<Diag> {
    Diag::error(code::ARGUMENT_TYPE, text).label(Origin::NONE, Focus::Call, "here")
}

/// Writes to the requested file, or to what takes pictures, or as text to the output of `print`.
fn deliver(
    host: &Host,
    picture: &Raster,
    file: &Dynamic,
    text: impl FnOnce(&terminal::Terminal) -> Result<String>,
) -> Result<Dynamic> {
    match given(file).map(|file| native::text("file", file)).transpose()?.map(PathBuf::from) {
        Some(path) => {
            let kind = files::Kind::of(&path)?;
            if !matches!(kind, files::Kind::Png | files::Kind::Jpeg) {
                let message = format!("`{}`: a picture is a .png or .jpg file", path.display());
                return Err(Diag::error(code::FILE_KIND, message).help("name it `.png`"));
            }
            storage::permitted(host, &path, true)?;
            files::write(&path, &files::Value::One(picture.array()?)).map_err(|diag| storage::at_path(diag, &path))?;
        }
        None => {
            let terminal = *host.print.terminal.lock();
            let text = text(&terminal)?;
            match &*host.print.pictures.read() {
                Some(take) => take(picture, &text),
                None => (host.output.read())(&text),
            }
        }
    }
    Ok(Dynamic::UNIT)
}

/// A tensor as a picture: `[H, W]`, `[H, W, C]` or `[C, H, W]` with 1, 3 or 4 channels. Integers are 0 to 255; floats
/// 0 to 1, or scaled by their range if they exceed it.
fn picture(host: &Host, value: &Dynamic) -> Result<Raster> {
    let Some(tensor) = value.read_lock::<Tensor>().map(|tensor| tensor.clone()) else {
        return Err(wrong(format!("`show` draws a tensor, not {}", type_names::of_value(value))));
    };
    let shape = tensor.shape().to_vec();
    let channels = |n: usize| matches!(n, 1 | 3 | 4);
    // height, width, channels, and the strides of the three.
    let (h, w, c, strides) = match shape[..] {
        [h, w] => (h, w, 1, [w, 1, 0]),
        [h, w, c] if channels(c) => (h, w, c, [w * c, c, 1]),
        [c, h, w] if channels(c) => (h, w, c, [w, 1, h * w]),
        _ => {
            let diag = Diag::error(
                code::SHAPE,
                format!("a picture has the shape [H, W], [H, W, C] or [C, H, W], not {shape:?}"),
            );
            let help = if shape.len() == 4 { "show one of them: `show(x[0])`" } else { "C is 1, 3 or 4" };
            return Err(diag.help(help));
        }
    };
    check_size(shape.iter().product())?;
    if h == 0 || w == 0 {
        fail!(SHAPE, "a picture without pixels cannot be shown: its shape is {shape:?}");
    }
    let values: Vec<f64> = observe::scalars(&host.rt, &tensor)?.into_iter().map(|x| x.to_f64()).collect();
    let (low, high) = bounds(tensor.dtype(), &values);
    let level = |x: f64| ((x - low) / (high - low) * 255.0).round().clamp(0.0, 255.0) as u8;
    let at = |y: usize, x: usize, channel: usize| level(values[y * strides[0] + x * strides[1] + channel * strides[2]]);
    Ok(Raster::of(w, h, |x, y| match c {
        1 => [at(y, x, 0); 3],
        3 => [at(y, x, 0), at(y, x, 1), at(y, x, 2)],
        _ => {
            let alpha = at(y, x, 3) as u32;
            let over_white = |level: u8| ((level as u32 * alpha + 255 * (255 - alpha)) / 255) as u8;
            [over_white(at(y, x, 0)), over_white(at(y, x, 1)), over_white(at(y, x, 2))]
        }
    }))
}

/// The values that are black and white.
fn bounds(dtype: DType, values: &[f64]) -> (f64, f64) {
    if dtype == DType::Bool {
        return (0.0, 1.0);
    }
    if !dtype.is_float() {
        return (0.0, 255.0);
    }
    let finite = values.iter().copied().filter(|x| x.is_finite());
    let (low, high) = finite.fold((0.0f64, 1.0f64), |(low, high), x| (low.min(x), high.max(x)));
    if (low, high) == (0.0, 1.0) {
        return (low, high);
    }
    let finite = values.iter().copied().filter(|x| x.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    if high > low { (low, high) } else { (low - 1.0, low + 1.0) }
}

fn check_size(elements: usize) -> Result<()> {
    if elements > MAX_ELEMENTS {
        let diag = Diag::error(code::VALUE, format!("{elements} elements are more than can be drawn"));
        return Err(diag.help("draw a part of it: `x[slice(0, (), 10)]` takes every tenth"));
    }
    Ok(())
}

/// `plot(y)` or `plot(x, y)`; a `y` of two dimensions has a curve in each row.
fn chart(host: &Host, x: &Dynamic, y: Option<&Dynamic>, mark: Mark, title: String) -> Result<Chart> {
    let (xs, ys) = match y {
        None => (None, numbers(host, x)?),
        Some(y) => (Some(numbers(host, x)?), numbers(host, y)?),
    };
    let rows = if ys.rows == 1 { 1 } else { ys.rows };
    let length = ys.values.len() / rows.max(1);
    if ys.values.is_empty() {
        fail!(SHAPE, "a curve without points cannot be drawn");
    }
    if let Some(xs) = &xs
        && (xs.rows != 1 || xs.values.len() != length)
    {
        fail!(SHAPE, "`x` has {} numbers and `y` {length}: a point needs both", xs.values.len());
    }
    let curves = (0..rows).map(|row| {
        let ys = &ys.values[row * length..(row + 1) * length];
        let x = |index: usize| xs.as_ref().map_or(index as f64, |xs| xs.values[index]);
        Curve { points: ys.iter().enumerate().map(|(index, &y)| (x(index), y)).collect(), mark }
    });
    Chart::new(curves.collect(), title).ok_or_else(|| {
        Diag::error(code::VALUE, "no point of the curve is finite").help("look for NaN: `y.isnan().any()`")
    })
}

/// Numbers for a chart.
struct Numbers {
    values: Vec<f64>,
    rows: usize,
}

/// A tensor of one or two dimensions, or an array of numbers and tensors of one element.
fn numbers(host: &Host, value: &Dynamic) -> Result<Numbers> {
    if let Some(tensor) = value.read_lock::<Tensor>().map(|tensor| tensor.clone()) {
        let shape = tensor.shape().to_vec();
        check_size(shape.iter().product())?;
        let rows = match shape[..] {
            [] | [_] => 1,
            [rows, _] => rows,
            _ => fail!(SHAPE, "a curve has the shape [N], several of them [K, N], not {shape:?}"),
        };
        let values = observe::scalars(&host.rt, &tensor)?.into_iter().map(|x| x.to_f64()).collect();
        return Ok(Numbers { values, rows });
    }
    let Some(array) = value.read_lock::<Array>().map(|array| array.clone()) else {
        return Err(wrong(format!(
            "`plot` draws a tensor or an array of numbers, not {}",
            type_names::of_value(value)
        )));
    };
    let number = |item: &Dynamic| -> Result<f64> {
        if let Some(tensor) = item.read_lock::<Tensor>() {
            return observe::item(&host.rt, &tensor).map(|x| x.to_f64());
        }
        let plain = item.as_float().or_else(|_| item.as_int().map(|i| i as f64));
        plain.map_err(|_| wrong(format!("`plot` draws numbers, and the array holds {}", type_names::of_value(item))))
    };
    Ok(Numbers { values: array.iter().map(number).collect::<Result<_>>()?, rows: 1 })
}

#[cfg(test)]
mod tests {
    use crate::script::session::handle::Session;
    use std::sync::{Arc, Mutex};

    fn printed(text: &str) -> Result<String, crate::Error> {
        let out = Arc::new(Mutex::new(String::new()));
        let sink = out.clone();
        let builder = Session::builder()
            .all_files()
            .output(move |line| sink.lock().expect("no panic").push_str(&format!("{line}\n")));
        builder.build()?.run_str("draw", text)?;
        let text = out.lock().expect("no panic").clone();
        Ok(text)
    }

    #[test]
    fn a_picture_without_colors_is_shades() {
        let text = printed("show(tensor([[0.0, 1.0], [1.0, 0.0]]))").expect("drawn");
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() > 1 && lines[0].starts_with(' ') && lines[0].ends_with('@'), "{text}");
        assert!(lines[lines.len() - 1].starts_with('@') && !text.contains('\x1b'), "{text}");
    }

    #[test]
    fn both_orders_of_channels_and_all_dtypes_are_pictures() {
        let same = "let a = rand([3, 4, 5]); show(a); show(a.permute([1, 2, 0])); show((a * 255).round().to(\"u8\"));";
        let text = printed(same).expect("drawn");
        let third = text.lines().count() / 3;
        let part = |n: usize| text.lines().skip(n * third).take(third).collect::<Vec<_>>();
        assert_eq!(part(0), part(1));
        assert_eq!(part(0), part(2));
        printed("show(zeros([2, 2], #{dtype: \"bool\"})); show(randn([4, 4]) * 9); show(ones([2, 2, 4]));")
            .expect("drawn");
    }

    #[test]
    fn what_cannot_be_drawn_is_an_error() {
        for (text, code) in [
            ("show(1)", "E0204"),
            ("show(zeros([2, 2, 2, 2]))", "E0201"),
            ("show(zeros([0, 2]))", "E0201"),
            ("show(zeros([2, 2]), #{fil: \"x\"})", "E0203"),
            ("show(zeros([2, 2]), #{file: \"x.npy\"})", "E0603"),
            ("plot([])", "E0201"),
            ("plot([1, \"a\"])", "E0204"),
            ("plot([1, 2], [1])", "E0201"),
            ("plot(tensor([NAN]))", "E0206"),
            ("plot(zeros([2, 2, 2]))", "E0201"),
        ] {
            let error = printed(text).expect_err(text);
            assert_eq!(error.code(), code, "{text}: {error}");
        }
    }

    #[test]
    fn files_hold_what_was_drawn() {
        let folder = tempfile::tempdir().expect("a folder");
        let (a, b) = (folder.path().join("a.png"), folder.path().join("b.png"));
        let text = format!(
            "let x = (rand([5, 7, 3]) * 255).to(\"u8\"); show(x, #{{file: {a:?}}});
             print(equal(load({a:?}), x)); plot([1.0, 3.0, 2.0], #{{file: {b:?}, title: \"loss\"}}); print(load({b:?}).shape);
             let dark = load({b:?}).to(\"i64\").sum(#{{dim: 2}}) < 600; print(dark.sum().item() > 1000);"
        );
        assert_eq!(printed(&text).expect("written"), "true\n[500, 800, 3]\ntrue\n");
    }

    #[test]
    fn a_curve_in_text_has_its_bounds_at_the_axes() {
        let text = printed("plot(linspace(0.0, 5.0, 50), linspace(-2.0, 7.0, 50))").expect("drawn");
        for word in ["-2", "6", "0", "5", "│", "└"] {
            assert!(text.contains(word), "{word} is missing:\n{text}");
        }
        let rows: Vec<&str> = text.lines().filter(|line| line.contains(['│', '┤'])).collect();
        let column = |line: &str| line.chars().position(|c| ('\u{2801}'..='\u{28ff}').contains(&c));
        let (top, bottom) = (column(rows[0]), column(rows[rows.len() - 1]));
        assert!(top > bottom, "the curve rises:\n{text}");
    }
}
