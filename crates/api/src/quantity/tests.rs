//! Quantities mean what Kubernetes says, exactly, and garbage is refused.

use proptest::prelude::*;

use super::*;

fn nanos(text: &str) -> i128 {
    Amount::parse(text).unwrap_or_else(|e| panic!("{text}: {e}")).nanos()
}

#[test]
fn every_suffix_means_what_kubernetes_says() {
    for (text, expected) in [
        ("0", 0),
        ("1n", 1),
        ("1u", 1_000),
        ("1m", 1_000_000),
        ("1", 1_000_000_000),
        ("1k", 1_000_000_000_000),
        ("1M", 10_i128.pow(15)),
        ("1G", 10_i128.pow(18)),
        ("1T", 10_i128.pow(21)),
        ("1P", 10_i128.pow(24)),
        ("1E", 10_i128.pow(27)),
        ("1Ki", 1024 * 10_i128.pow(9)),
        ("1Mi", 1024_i128.pow(2) * 10_i128.pow(9)),
        ("1Gi", 1024_i128.pow(3) * 10_i128.pow(9)),
        ("1Ti", 1024_i128.pow(4) * 10_i128.pow(9)),
        ("1Pi", 1024_i128.pow(5) * 10_i128.pow(9)),
        ("1Ei", 1024_i128.pow(6) * 10_i128.pow(9)),
        ("1e3", 10_i128.pow(12)),
        ("1E3", 10_i128.pow(12)),
        ("1e+3", 10_i128.pow(12)),
        ("1e-3", 1_000_000),
        ("+1.5", 1_500_000_000),
        ("-1.5", -1_500_000_000),
        (".5", 500_000_000),
        ("5.", 5_000_000_000),
        ("0.5Gi", 1024_i128.pow(3) / 2 * 10_i128.pow(9)),
        ("0e99999999999999999999", 0),
        ("000012", 12_000_000_000),
    ] {
        assert_eq!(nanos(text), expected, "{text}");
    }
}

#[test]
fn finer_than_a_billionth_rounds_away_from_zero() {
    for (text, expected) in [
        ("0.1n", 1),
        ("1.1n", 2),
        ("-1.1n", -2),
        ("1e-10", 1),
        ("19e-10", 2),
        ("20e-10", 2),
        ("1e-99999999999999999999", 1),
        ("0.00000000000000000000000000000000000000000000000000000001", 1),
        ("0.00000000000000000000000000000000000000000000000000000001Ei", 1),
        // 2^60 * 10^9 / 10^30 billionths is 0.00115..., so this is one full byte and a little.
        ("1.000000000000000000000000000001", 1_000_000_001),
    ] {
        assert_eq!(nanos(text), expected, "{text}");
    }
}

#[test]
fn garbage_is_refused() {
    for text in [
        "", " ", "+", "-", ".", "1 ", " 1", "1 Gi", "1gi", "1K", "1KI", "1mm", "1e", "1e+", "1e1.5", "e3",
        "1.2.3", "--1", "+-1", "1-", "0x10", "١", "1Gib", "NaN", "inf", "1e 3", "Gi",
    ] {
        assert!(matches!(Amount::parse(text), Err(ParseQuantityError::Malformed(_))), "{text:?}");
    }
    for text in
        ["1e99", "99999999999999999999999999999999999999999", "1e99999999999999999999", "999999999999Ei"]
    {
        assert!(matches!(Amount::parse(text), Err(ParseQuantityError::TooLarge(_))), "{text:?}");
    }
}

#[test]
fn units_round_up() {
    let parse = |text| Amount::parse(text).unwrap();
    assert_eq!(parse("500m").millis_ceil(), Some(500));
    assert_eq!(parse("0.5001").millis_ceil(), Some(501));
    assert_eq!(parse("2").millis_ceil(), Some(2000));
    assert_eq!(parse("2Gi").mebi_ceil(), Some(2048));
    assert_eq!(parse("1").mebi_ceil(), Some(1));
    assert_eq!(parse("1Mi").mebi_ceil(), Some(1));
    assert_eq!(parse("1048577").mebi_ceil(), Some(2));
    assert_eq!(parse("1G").mebi_ceil(), Some(954));
    assert_eq!(parse("-0.5").units_ceil(), Some(0));
    assert_eq!(parse("99E").millis_ceil(), None);
    assert!(parse("20Gi").is_multiple_of(parse("1Gi")));
    assert!(!parse("10.5Gi").is_multiple_of(parse("1Gi")));
    assert!(!parse("1").is_multiple_of(Amount::ZERO));
}

#[test]
fn the_wire_form_stays_as_it_came() {
    for json in ["1", "\"1\"", "\"1Gi\"", "\"not a quantity\""] {
        let quantity: Quantity = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&quantity).unwrap(), json);
    }
    assert_eq!(Quantity::from(2).amount(), Quantity::from("2").amount());
    assert!(Quantity::from("lots").amount().is_err());
}

proptest! {
    #[test]
    fn nothing_panics(text in "\\PC{0,24}") {
        let _ = Amount::parse(&text);
    }

    #[test]
    fn what_the_pattern_allows_is_read_or_too_large(text in r"(\+|-)?([0-9]{1,20}(\.[0-9]{0,20})?|\.[0-9]{1,20})(([KMGTPE]i)|[numkMGTPE]|[eE](\+|-)?[0-9]{1,3})?") {
        prop_assert!(!matches!(Amount::parse(&text), Err(ParseQuantityError::Malformed(_))), "{}", text);
    }

    #[test]
    fn order_is_that_of_the_numbers(a in 0_i64..1_000_000_000, b in 0_i64..1_000_000_000) {
        let (x, y) = (Amount::parse(&format!("{a}m")).unwrap(), Amount::parse(&format!("{b}m")).unwrap());
        prop_assert_eq!(a.cmp(&b), x.cmp(&y));
    }

    #[test]
    fn the_same_number_in_other_words(n in 0_i64..1_000_000_000) {
        let plain = Amount::parse(&n.to_string()).unwrap();
        prop_assert_eq!(plain, Amount::parse(&format!("{n}000m")).unwrap());
        prop_assert_eq!(plain, Amount::parse(&format!("{n}e0")).unwrap());
        prop_assert_eq!(plain, Amount::from_units(n));
        prop_assert_eq!(Amount::parse(&format!("{n}Ki")).unwrap(), Amount::parse(&(n * 1024).to_string()).unwrap());
    }

    #[test]
    fn rounding_up_is_least_upper_bound(n in any::<i64>()) {
        let amount = Amount(i128::from(n));
        let millis = i128::from(amount.millis_ceil().unwrap()) * NANOS_PER_MILLI;
        prop_assert!(millis >= i128::from(n) && millis - NANOS_PER_MILLI < i128::from(n));
    }
}
