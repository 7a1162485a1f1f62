//! Parameters of commands: their values, their combinations, and the texts that contain them.

use super::args::ScanArgs;
use crate::fault::Fault;
use scruple_core::subject::with_values;
use scruple_stats::sorting::SortedMap;

/// The values of parameters as the user wrote them: `1.0` must reach the program as `1.0`.
pub type Parameters = SortedMap<String, String>;

/// Returns every combination of parameter values, in the order of the command line.
pub(super) fn combinations(args: &ScanArgs) -> Result<Vec<Parameters>, Fault> {
    let mut all = vec![Parameters::new()];
    if let [name, low, high] = args.parameter_scan.as_slice() {
        all = extend(&all, name, &scan(low, high, args.parameter_step_size.as_deref())?);
    } else if !args.parameter_scan.is_empty() {
        return Err(Fault::usage("-P can be given once: use -L for further parameters"));
    }
    for pair in args.parameter_list.chunks(2) {
        let [name, values] = pair else { continue };
        let values: Vec<String> = values.split(',').map(str::to_owned).collect();
        if all[0].contains_key(name) {
            return Err(Fault::usage(format!("the parameter ‘{name}’ was given twice: name each once")));
        }
        all = extend(&all, name, &values);
    }
    Ok(all)
}

/// Returns each of these combinations with each value of one more parameter.
pub fn extend(all: &[Parameters], name: &str, values: &[String]) -> Vec<Parameters> {
    let with = |params: &Parameters, value: &String| {
        let mut params = params.clone();
        params.insert(name.to_owned(), value.clone());
        params
    };
    all.iter().flat_map(|params| values.iter().map(move |value| with(params, value))).collect()
}

fn scan(low: &str, high: &str, step: Option<&str>) -> Result<Vec<String>, Fault> {
    let number = |text: &str| {
        text.parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
            .ok_or_else(|| Fault::usage(format!("‘{text}’ is not a number: -P takes a name and two numbers")))
    };
    let (from, to, by) = (number(low)?, number(high)?, number(step.unwrap_or("1"))?);
    if by <= 0.0 || from > to || (to - from) / by > 10_000.0 {
        return Err(Fault::usage(format!(
            "cannot go from {low} to {high} in steps of {by}: the step must be positive, the end not before the start, \
             and there may be at most 10,000 steps"
        )));
    }
    // A number such as 5e-3 shows its decimals only when it is written without an exponent.
    let plain = [from, to, by].map(|number| number.to_string());
    let decimals = [low, high, step.unwrap_or("1")]
        .into_iter()
        .filter(|text| !text.contains(['e', 'E']))
        .chain(plain.iter().map(String::as_str))
        .map(|text| text.split_once('.').map_or(0, |(_, digits)| digits.len()))
        .max()
        .unwrap_or(0);
    let count = ((to - from) / by + 1e-9).floor() as usize;
    Ok((0..=count).map(|i| format!("{:.decimals$}", from + by * i as f64)).collect())
}

/// Replaces parameters in a text by their values: `{name}` becomes the value of that parameter. Values stay as they are.
pub fn substitute(text: &str, params: &Parameters) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('{') {
        out += before;
        let end = |name: &str| after.strip_prefix(name)?.strip_prefix('}');
        let found = params.iter().find_map(|(name, value)| Some((value, end(name)?)));
        rest = match found {
            Some((value, after)) => {
                out += value;
                after
            }
            None => {
                out.push('{');
                after
            }
        };
    }
    out + rest
}

/// Returns the name of a command with these parameters.
pub fn named(name: &str, params: &Parameters) -> String {
    let replaced = substitute(name, params);
    if replaced != name {
        return replaced;
    }
    with_values(name, params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_keep_the_decimals_they_were_given() {
        assert_eq!(scan("0.5", "1.5", Some("0.5")).expect("a scan"), ["0.5", "1.0", "1.5"]);
        assert_eq!(scan("1", "3", None).expect("a scan"), ["1", "2", "3"]);
        assert_eq!(scan("0", "0.01", Some("5e-3")).expect("a scan"), ["0.000", "0.005", "0.010"]);
        assert_eq!(scan("1.50", "2.5e1", Some("1e1")).expect("a scan"), ["1.50", "11.50", "21.50"]);
        assert!(scan("3", "1", None).is_err() && scan("1", "2", Some("0")).is_err());
    }

    #[test]
    fn a_value_that_looks_like_a_parameter_stays_as_it_is() {
        let params =
            [("a", "{b}"), ("b", "x"), ("", "none")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let params = SortedMap::from_iter(params);
        assert_eq!(substitute("{a} {b} {{b}} {c} {} {", &params), "{b} x {x} {c} none {");
    }
}
