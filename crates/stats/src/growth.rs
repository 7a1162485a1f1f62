//! Fits how a cost grows with the size of its input: cost = a + b·g(n), and which form g has.
//!
//! Exact metrics are fitted exactly ([`exact`]), or to within a few units ([`within`]). Noisy metrics are fitted by
//! least squares in relative error ([`noisy`]), which may end in "cannot tell between n and n log n". At least three
//! sizes are needed, since a curve of every form goes through any two points.

mod exact;
mod noisy;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use exact::{exact, within};
pub use noisy::noisy;

use super::Interval;

/// The forms of growth, slowest first; logarithms are to base 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum GrowthForm {
    /// The cost does not depend on the size.
    #[serde(rename = "1")]
    Constant,
    /// The cost grows with the logarithm of the size.
    #[serde(rename = "log n")]
    Logarithmic,
    /// The cost grows with the size.
    #[serde(rename = "n")]
    Linear,
    /// The cost grows with the size times its logarithm.
    #[serde(rename = "n log n")]
    Linearithmic,
    /// The cost grows with the square of the size.
    #[serde(rename = "n^2")]
    Quadratic,
    /// The cost grows with the cube of the size.
    #[serde(rename = "n^3")]
    Cubic,
    /// The cost grows exponentially with the size, to base 2.
    #[serde(rename = "2^n")]
    Exponential,
    /// The cost changes with the size, and none of these forms comes close.
    #[serde(rename = "other")]
    Other,
    /// There are too few readings of each size to tell whether the cost grows.
    #[serde(rename = "unknown")]
    Unknown,
}

impl GrowthForm {
    /// All forms of growth except the constant, [`GrowthForm::Other`] and [`GrowthForm::Unknown`], slowest first.
    pub const GROWING: [GrowthForm; 6] = [
        GrowthForm::Logarithmic,
        GrowthForm::Linear,
        GrowthForm::Linearithmic,
        GrowthForm::Quadratic,
        GrowthForm::Cubic,
        GrowthForm::Exponential,
    ];

    /// Whether the cost is known to change with the size.
    pub fn is_change(self) -> bool {
        !matches!(self, GrowthForm::Constant | GrowthForm::Unknown)
    }

    /// Whether the cost is known to follow a curve g(n).
    pub fn has_curve(self) -> bool {
        !matches!(self, GrowthForm::Other | GrowthForm::Unknown)
    }

    /// The value g(n) of the form; `None` where it is not a finite number, such as the logarithm of 0. It is 0 for the
    /// constant.
    pub fn at(self, n: f64) -> Option<f64> {
        let value = match self {
            GrowthForm::Constant => 0.0,
            GrowthForm::Logarithmic => n.log2(),
            GrowthForm::Linear => n,
            GrowthForm::Linearithmic => n * n.log2(),
            GrowthForm::Quadratic => n * n,
            GrowthForm::Cubic => n * n * n,
            GrowthForm::Exponential => n.exp2(),
            GrowthForm::Other | GrowthForm::Unknown => return None,
        };
        value.is_finite().then_some(value)
    }
}

impl fmt::Display for GrowthForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GrowthForm::Constant => "1",
            GrowthForm::Logarithmic => "log n",
            GrowthForm::Linear => "n",
            GrowthForm::Linearithmic => "n log n",
            GrowthForm::Quadratic => "n^2",
            GrowthForm::Cubic => "n^3",
            GrowthForm::Exponential => "2^n",
            GrowthForm::Other => "other",
            GrowthForm::Unknown => "unknown",
        })
    }
}

/// A fitted growth: cost = intercept + slope·g(n), in the unit of the cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Growth {
    /// The form g that fits best; the constant where no growth can be shown.
    pub form: GrowthForm,
    /// The part of the cost that does not grow. Where the form is unknown, and where rising costs fit no form, the cost
    /// of the smallest size; where costs fall, the constant that fits them best.
    pub intercept: f64,
    /// The increase of the cost when g(n) grows by 1: for one more unit (linear), for a doubling (logarithmic).
    pub slope: f64,
    /// The interval of the slope; absent for exact fits and for the constant.
    #[serde(serialize_with = "super::interval::as_pair_or_null")]
    pub slope_interval: Option<Interval>,
    /// The coefficients of n, n² … below the leading power, lowest first, where an exact polynomial needs them.
    pub lower: Vec<f64>,
    /// Whether every point lies exactly on the curve.
    pub exact: bool,
    /// The other forms that the points do not exclude. If there are any, the form is not known.
    pub also_possible: Vec<GrowthForm>,
    /// The distance of the points from the curve: the largest distance, in the unit of the cost, for exact
    /// metrics; the root mean square of relative distances for noisy ones.
    pub residual: f64,
    /// The smallest and the largest size, each with its median cost; for noisy metrics only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends: Option<[(f64, f64); 2]>,
}

impl Growth {
    /// The cost of size `n` on the fitted curve; `None` where the form has no value there.
    pub fn at(&self, n: f64) -> Option<f64> {
        let lower: f64 = (1..).zip(&self.lower).map(|(power, coefficient)| coefficient * n.powi(power)).sum();
        Some(self.intercept + lower + self.slope * self.form.at(n)?)
    }
}

/// The reason why no growth can be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum NoFit {
    /// There are fewer than three distinct sizes.
    TooFewSizes {
        /// The number of distinct sizes.
        have: usize,
    },
    /// A cost is zero or negative, or a size is negative, so that relative errors or forms are undefined.
    NotPositive,
    /// A size or cost is infinite or not a number.
    NotFinite,
    /// No form comes within the tolerance.
    NoForm,
}

impl fmt::Display for NoFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoFit::TooFewSizes { have } => {
                write!(f, "{have} different sizes are too few; at least 3 are needed")
            }
            NoFit::NotPositive => f.write_str("a cost is not positive or a size is negative"),
            NoFit::NotFinite => f.write_str("a size or cost is not a finite number"),
            NoFit::NoForm => f.write_str("no form of growth comes close enough"),
        }
    }
}

impl std::error::Error for NoFit {}
