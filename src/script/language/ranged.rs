//! Methods of arrays and strings that take a range, with bounds from the end where they are negative, as the index `xs[a..b]`
//! has: Rhai's take a negative bound for 0.

use crate::script::bind::rows::Natives;
use crate::script::machine::slices::clamped;
use crate::script::values::ascii;
use crate::script::values::panics::Place;
use rhai::{Array, FuncRegistration, ImmutableString};
use std::ops::{Range, RangeInclusive};

/// A range of a script.
trait Bounds: rhai::Variant + Clone {
    /// How the interpreter lists it, for `check`.
    const LISTED: &str;
    /// The places that it names among so many.
    fn within(&self, len: usize) -> Range<usize>;
}

impl Bounds for Range<i64> {
    const LISTED: &str = "range: Range<i64>";

    fn within(&self, len: usize) -> Range<usize> {
        clamped(self.start, self.end, false, len)
    }
}

impl Bounds for RangeInclusive<i64> {
    const LISTED: &str = "range: RangeInclusive<i64>";

    fn within(&self, len: usize) -> Range<usize> {
        clamped(*self.start(), *self.end(), true, len)
    }
}

pub fn register(natives: &mut Natives) {
    of::<Range<i64>>(natives);
    of::<RangeInclusive<i64>>(natives);
}

fn of<B: Bounds>(natives: &mut Natives) {
    let module = &mut natives.module;
    let (array, text) = ("array: &mut Array", "text: &mut ImmutableString");
    let own = |name: &str, listed: &[&str], is_pure: bool| {
        FuncRegistration::new(name).in_global_namespace().with_purity(is_pure).with_params_info(listed)
    };
    let reading = |name: &str, of: &str| own(name, &[of, B::LISTED], true);
    let changing = |name: &str, of: &str| own(name, &[of, B::LISTED], false);
    reading("extract", array).place_in(module, |array: &mut Array, range: B| array[range.within(array.len())].to_vec());
    own("splice", &[array, B::LISTED, "values: Array"], false).place_in(
        module,
        |array: &mut Array, range: B, values: Array| {
            let places = range.within(array.len());
            array.splice(places, values);
        },
    );
    changing("drain", array).place_in(module, |array: &mut Array, range: B| -> Array {
        let places = range.within(array.len());
        array.drain(places).collect()
    });
    changing("retain", array).place_in(module, |array: &mut Array, range: B| -> Array {
        let places = range.within(array.len());
        let kept: Array = array.drain(places).collect();
        std::mem::replace(array, kept)
    });
    reading("sub_string", text).place_in(module, |text: &mut ImmutableString, range: B| part(text, &range));
    changing("crop", text).place_in(module, |text: &mut ImmutableString, range: B| *text = part(text, &range));
}

fn part(text: &ImmutableString, range: &impl Bounds) -> ImmutableString {
    ascii::part(text, range.within(ascii::length(text)))
}
