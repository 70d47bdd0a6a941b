//! Money in integers: amounts in nano-dollars, prices in pico-dollars a token.
//!
//! No sum here is ever a float. A price list says `2.5e-07` dollars a token or `0.42` dollars a million; both are read
//! as decimals, digit by digit, so that what the list says is what is charged.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

/// An amount of money: whole nano-dollars (10⁻⁹ USD), up to about 18 billion dollars; sums saturate there.
///
/// ```
/// use seawall::cost_guard::Usd;
///
/// let limit: Usd = "10.50".parse().unwrap();
/// assert_eq!(limit, Usd::dollars(10).saturating_add(Usd::cents(50)));
/// assert_eq!(limit.to_string(), "$10.50");
/// assert_eq!(Usd::nanos(1_063_761_250).to_string(), "$1.06376125");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usd(u64);

const NANOS_A_DOLLAR: u64 = 1_000_000_000;

impl Usd {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The most that can be said.
    pub const MAX: Self = Self(u64::MAX);

    /// Whole dollars.
    #[must_use]
    pub const fn dollars(dollars: u32) -> Self {
        Self(dollars as u64 * NANOS_A_DOLLAR)
    }

    /// Hundredths of a dollar.
    #[must_use]
    pub const fn cents(cents: u32) -> Self {
        Self(cents as u64 * (NANOS_A_DOLLAR / 100))
    }

    /// Billionths of a dollar.
    #[must_use]
    pub const fn nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// In billionths of a dollar.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whether it is nothing.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The sum, or [`Usd::MAX`].
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, or nothing.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// That many percent of it, rounded down.
    #[must_use]
    pub fn percent(self, percent: u8) -> Self {
        let share = u128::from(self.0) * u128::from(percent) / 100;
        Self(u64::try_from(share).unwrap_or(u64::MAX))
    }
}

/// Reads dollars: `10`, `0.42`, `2.5e-07`. Digits beyond the nano-dollar are rounded to the nearest one; what is above
/// zero never becomes zero.
impl FromStr for Usd {
    type Err = MoneyError;

    fn from_str(text: &str) -> Result<Self, MoneyError> {
        decimal(text, 9).map(Self)
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        dollars(f, u128::from(self.0), 9)
    }
}

/// The price of one token: whole pico-dollars (10⁻¹² USD), which is the same as micro-dollars a million tokens.
///
/// ```
/// use seawall::cost_guard::Rate;
///
/// assert_eq!(Rate::per_million("2.50").unwrap(), Rate::pico(2_500_000));
/// assert_eq!(Rate::per_token("2.5e-06").unwrap(), Rate::pico(2_500_000));
/// assert!(Rate::per_token("-1").is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// Free.
    pub const ZERO: Self = Self(0);

    /// Pico-dollars a token, or micro-dollars a million tokens: `2_500_000` is $2.50 a million.
    #[must_use]
    pub const fn pico(pico: u64) -> Self {
        Self(pico)
    }

    /// In pico-dollars a token.
    #[must_use]
    pub const fn as_pico(self) -> u64 {
        self.0
    }

    /// Whether it is free.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Reads dollars a token: `2.5e-07`. Rounded to the nearest pico-dollar, which mends the noise of floats in price
    /// lists; what is above zero never becomes zero.
    ///
    /// # Errors
    ///
    /// Where the text is no number, is negative, or is more than can be said.
    pub fn per_token(text: &str) -> Result<Self, MoneyError> {
        decimal(text, 12).map(Self)
    }

    /// Reads dollars a million tokens: `0.42`. Rounded like [`Rate::per_token`].
    ///
    /// # Errors
    ///
    /// Where the text is no number, is negative, or is more than can be said.
    pub fn per_million(text: &str) -> Result<Self, MoneyError> {
        decimal(text, 6).map(Self)
    }

    /// The price of that many tokens, rounded up to the nano-dollar.
    #[must_use]
    #[inline]
    pub fn cost(self, tokens: u64) -> Usd {
        // The product nearly always fits into 64 bits, and then the division is quick.
        match self.0.checked_mul(tokens).and_then(|pico| pico.checked_add(999)) {
            Some(pico) => Usd(pico / 1_000),
            None => self.wide_cost(tokens),
        }
    }

    #[cold]
    fn wide_cost(self, tokens: u64) -> Usd {
        let nanos = (u128::from(self.0) * u128::from(tokens)).div_ceil(1_000);
        Usd(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Shows dollars a million tokens.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        dollars(f, u128::from(self.0), 6)?;
        f.write_str("/M")
    }
}

/// Why a text is no amount and no price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MoneyError {
    /// It is no decimal number; infinities and NaN are none.
    NotANumber,
    /// It is below zero.
    Negative,
    /// It is more than can be said.
    TooLarge,
}

impl fmt::Display for MoneyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotANumber => "is not a decimal number",
            Self::Negative => "is below zero",
            Self::TooLarge => "is too large an amount",
        })
    }
}

impl Error for MoneyError {}

/// Digits that a mantissa may have; further ones are below any rounding.
const MOST_DIGITS: u32 = 30;

/// The text's value times 10^`scale`, to the nearest integer, and at least 1 where it is above zero.
fn decimal(text: &str, scale: i32) -> Result<u64, MoneyError> {
    let text = text.trim();
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], exponent(&unsigned[at + 1..])?),
        None => (unsigned, 0),
    };
    let (mut mantissa, mut shift, mut seen, mut point) = (0_u128, 0_i32, 0_u32, false);
    let mut any = false;
    for byte in digits.bytes() {
        match byte {
            b'.' if !point => point = true,
            b'0'..=b'9' => {
                any = true;
                if seen < MOST_DIGITS {
                    mantissa = mantissa * 10 + u128::from(byte - b'0');
                    seen += u32::from(mantissa > 0);
                    shift -= i32::from(point);
                } else {
                    shift = shift.saturating_add(i32::from(!point));
                }
            }
            _ => return Err(MoneyError::NotANumber),
        }
    }
    match (any, negative, mantissa) {
        (false, ..) => Err(MoneyError::NotANumber),
        (_, _, 0) => Ok(0),
        (_, true, _) => Err(MoneyError::Negative),
        _ => scaled(mantissa, exponent.saturating_add(shift).saturating_add(scale)),
    }
}

fn exponent(text: &str) -> Result<i32, MoneyError> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(MoneyError::NotANumber);
    }
    // Beyond a thousand it only matters that it is large.
    let size = digits.parse().unwrap_or(1_000).min(1_000);
    Ok(if text.starts_with('-') { -size } else { size })
}

fn scaled(mantissa: u128, exponent: i32) -> Result<u64, MoneyError> {
    let power = 10_u128.checked_pow(exponent.unsigned_abs());
    let value = if exponent >= 0 {
        power.and_then(|power| mantissa.checked_mul(power)).ok_or(MoneyError::TooLarge)?
    } else {
        // Without a power the value is far below one.
        power.map_or(0, |power| mantissa / power + u128::from(mantissa % power >= power.div_ceil(2)))
    };
    u64::try_from(value.max(1)).map_err(|_| MoneyError::TooLarge)
}

/// Writes `units` of 10^-`places` dollars, with two decimals or as many as it has.
fn dollars(f: &mut fmt::Formatter<'_>, units: u128, places: u32) -> fmt::Result {
    let one = 10_u128.pow(places);
    let (whole, mut part, mut places) = (units / one, units % one, places as usize);
    while places > 2 && part % 10 == 0 {
        part /= 10;
        places -= 1;
    }
    write!(f, "${whole}.{part:0places$}")
}

#[cfg(all(test, not(seawall_loom)))]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_exactly() {
        assert_eq!(Rate::per_token("2.5e-07"), Ok(Rate::pico(250_000)));
        assert_eq!(Rate::per_token("0.00000025"), Ok(Rate::pico(250_000)));
        assert_eq!(Rate::per_token("1.3E-10"), Ok(Rate::pico(130)), "the smallest on the lists");
        assert_eq!(Rate::per_million("0.42"), Ok(Rate::pico(420_000)));
        assert_eq!(Rate::per_million(" 10 "), Ok(Rate::pico(10_000_000)));
        assert_eq!("0.42".parse(), Ok(Usd::cents(42)));
        assert_eq!("1e1".parse(), Ok(Usd::dollars(10)));
        assert_eq!(".5".parse(), Ok(Usd::cents(50)));
    }

    #[test]
    fn the_noise_of_floats_is_rounded_away_and_nothing_above_zero_becomes_free() {
        assert_eq!(Rate::per_token("3.0001999999999996E-7"), Ok(Rate::pico(300_020)));
        assert_eq!(Rate::per_token("1e-15"), Ok(Rate::pico(1)));
        assert_eq!(Rate::per_token("1e-999999"), Ok(Rate::pico(1)));
        assert_eq!(Rate::per_token("0.0000000000005"), Ok(Rate::pico(1)), "a half is rounded up");
        assert_eq!(Rate::per_token("0.00000000000149"), Ok(Rate::pico(1)));
        assert_eq!(Rate::per_token("-0.0"), Ok(Rate::ZERO));
    }

    #[test]
    fn what_is_no_amount_is_an_error() {
        for text in [
            "", ".", "e5", "1e", "NaN", "inf", "-inf", "12x", "1.2.3", "0x10", "1_000", "$1", "true", "1e+-2",
        ] {
            assert_eq!(text.parse::<Usd>(), Err(MoneyError::NotANumber), "{text}");
        }
        assert_eq!("-1".parse::<Usd>(), Err(MoneyError::Negative));
        assert_eq!("-1e-30".parse::<Usd>(), Err(MoneyError::Negative));
        assert_eq!("1e308".parse::<Usd>(), Err(MoneyError::TooLarge));
        assert_eq!("18446744074".parse::<Usd>(), Err(MoneyError::TooLarge));
        assert_eq!("9".repeat(400).parse::<Usd>(), Err(MoneyError::TooLarge));
    }

    #[test]
    fn a_cost_is_rounded_up_and_saturates() {
        assert_eq!(Rate::pico(1).cost(1), Usd::nanos(1));
        assert_eq!(Rate::pico(250).cost(4), Usd::nanos(1));
        assert_eq!(Rate::pico(250).cost(5), Usd::nanos(2));
        assert_eq!(Rate::ZERO.cost(u64::MAX), Usd::ZERO);
        assert_eq!(Rate::pico(u64::MAX).cost(u64::MAX), Usd::MAX);
        assert_eq!(Usd::MAX.saturating_add(Usd::nanos(1)), Usd::MAX);
        assert_eq!(Usd::ZERO.saturating_sub(Usd::nanos(1)), Usd::ZERO);
    }

    #[test]
    fn it_is_shown_in_dollars() {
        for (nanos, text) in
            [(0, "$0.00"), (1, "$0.000000001"), (420_000_000, "$0.42"), (10_000_000_000, "$10.00")]
        {
            assert_eq!(Usd::nanos(nanos).to_string(), text);
        }
        assert_eq!(Rate::pico(2_500_000).to_string(), "$2.50/M");
        assert_eq!(Usd::dollars(1).percent(80), Usd::cents(80));
    }

    #[test]
    fn it_says_what_it_was_made_of_and_whether_that_is_nothing() {
        assert_eq!((Usd::nanos(7).as_nanos(), Rate::pico(7).as_pico()), (7, 7));
        assert!(Usd::ZERO.is_zero() && Rate::ZERO.is_zero());
        assert!(!Usd::nanos(1).is_zero() && !Rate::pico(1).is_zero());
    }

    #[test]
    fn more_digits_than_are_kept_change_nothing() {
        let zeros = |count| "0".repeat(count);
        assert_eq!(format!("0.{}1", zeros(40)).parse(), Ok(Usd::nanos(1)), "above zero is never free");
        assert_eq!(format!("1.{}", zeros(40)).parse(), Ok(Usd::dollars(1)));
        assert_eq!(format!("1{}e-40", zeros(40)).parse(), Ok(Usd::dollars(1)));
    }

    #[test]
    fn each_error_says_what_is_wrong() {
        assert_eq!("x".parse::<Usd>().unwrap_err().to_string(), "is not a decimal number");
        assert_eq!("-1".parse::<Usd>().unwrap_err().to_string(), "is below zero");
        assert_eq!("1e99".parse::<Usd>().unwrap_err().to_string(), "is too large an amount");
    }

    proptest::proptest! {
        #[test]
        fn what_is_shown_is_read_back(nanos: u64) {
            let shown = Usd::nanos(nanos).to_string();
            proptest::prop_assert_eq!(shown.trim_start_matches('$').parse(), Ok(Usd::nanos(nanos)));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<Usd>();
        }
    }
}
