//! The order of values that are all of one kind: integers, floats, strings, or arrays of as many such values. It is found
//! without a look at the kinds in each comparison.

use rhai::{Array, Dynamic, ImmutableString};
use std::cmp::Ordering;

/// The places of values in their order, equal ones as they stand; none where they are of several kinds, or NaN is among them.
pub fn places(values: &[Dynamic]) -> Option<Vec<usize>> {
    let column = Column::of(values)?;
    let mut places: Vec<usize> = (0..values.len()).collect();
    match &column {
        Column::Integers(all) => places.sort_by_key(|&at| all[at]),
        column => places.sort_by(|&a, &b| column.compare(a, b)),
    }
    Some(places)
}

enum Column {
    Integers(Vec<i64>),
    Floats(Vec<f64>),
    Texts(Vec<ImmutableString>),
    /// The first elements of arrays, the second ones, ...
    Lists(Vec<Column>),
}

impl Column {
    fn of(values: &[Dynamic]) -> Option<Column> {
        let first = values.first()?;
        if first.is_int() {
            let all = values.iter().map(|value| value.is_int().then(|| value.as_int().ok()).flatten());
            return all.collect::<Option<_>>().map(Column::Integers);
        }
        if first.is_float() {
            let number = |value: &Dynamic| if value.is_float() { value.as_float().ok() } else { None };
            let all = values.iter().map(|value| number(value).filter(|number| !number.is_nan()));
            return all.collect::<Option<_>>().map(Column::Floats);
        }
        if first.is_string() {
            let text = |value: &Dynamic| value.read_lock::<ImmutableString>().map(|text| text.clone());
            return values.iter().map(text).collect::<Option<_>>().map(Column::Texts);
        }
        let width = first.read_lock::<Array>()?.len();
        let mut columns: Vec<Array> = (0..width).map(|_| Array::with_capacity(values.len())).collect();
        for value in values {
            // Not arrays in arrays: their depth is bounded elsewhere.
            let is_flat = |list: &Array| list.len() == width && !list.iter().any(Dynamic::is_array);
            let list = value.read_lock::<Array>().filter(|list| is_flat(list))?;
            columns.iter_mut().zip(list.iter()).for_each(|(column, part)| column.push(part.clone()));
        }
        columns.iter().map(|column| Column::of(column)).collect::<Option<_>>().map(Column::Lists)
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        match self {
            Column::Integers(all) => all[a].cmp(&all[b]),
            Column::Floats(all) => all[a].partial_cmp(&all[b]).unwrap_or(Ordering::Equal),
            Column::Texts(all) => all[a].as_str().cmp(all[b].as_str()),
            Column::Lists(columns) => {
                let orders = columns.iter().map(|column| column.compare(a, b));
                orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: Vec<Dynamic>) -> Option<Vec<usize>> {
        places(&values)
    }

    #[test]
    fn equal_values_stay_as_they_stand() {
        assert_eq!(of(vec![3.into(), 1.into(), 3.into(), 2.into()]), Some(vec![1, 3, 0, 2]));
        assert_eq!(of(vec![0.0.into(), (-1.5).into(), (-0.0).into()]), Some(vec![1, 0, 2]));
        assert_eq!(of(vec!["b".into(), "".into(), "ab".into(), "b".into()]), Some(vec![1, 2, 0, 3]));
        let pair = |a: i64, b: &str| Dynamic::from_array(vec![a.into(), b.into()]);
        assert_eq!(of(vec![pair(2, "a"), pair(1, "z"), pair(1, "b"), pair(2, "a")]), Some(vec![2, 1, 0, 3]));
    }

    #[test]
    fn other_values_are_left_to_the_general_order() {
        let list = |parts: &[i64]| Dynamic::from_array(parts.iter().map(|part| (*part).into()).collect());
        for values in [
            vec![],
            vec![1.into(), 2.5.into()],
            vec![1.5.into(), f64::NAN.into()],
            vec!["a".into(), 'b'.into()],
            vec![list(&[1]), list(&[1, 2])],
            vec![Dynamic::from_array(vec![list(&[1])]), Dynamic::from_array(vec![list(&[1])])],
        ] {
            assert_eq!(of(values.clone()), None, "{values:?}");
        }
    }
}
