//! What Kubernetes adds: URLs, addresses, quantities, versions and named formats.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Returns::{Anything, Bool, Double, Int, Map as MapType, Object, Optional, String as Str};
use super::{Definition, Evaluated, global, member, on_text};
use crate::schema::constraints::format::{self, Format};
use crate::schema::expr::eval::{Budget, EvalError};
use crate::schema::expr::net::{self, Cidr};
use crate::schema::expr::quantity::Quantity;
use crate::schema::expr::semver::Semver;
use crate::schema::expr::url::Url;
use crate::schema::expr::value::{Map, Val};

pub(super) const TABLE: &[Definition] = &[
    global("url", 1, Object, |args, budget| match &args[0] {
        url @ Val::Url(_) => Ok(url.clone()),
        _ => on_text("url", args, budget, |text| match Url::parse(text) {
            Some(url) => Ok(Val::Url(Arc::new(url))),
            None => Err(EvalError::failed(format!("URL parse error during conversion from string: {text}"))),
        }),
    }),
    global("isURL", 1, Bool, |args, budget| {
        on_text("isURL", args, budget, |text| Ok(Val::Bool(Url::parse(text).is_some())))
    }),
    member("getScheme", 1, Str, |args, _| of_url("getScheme", args, |url| Val::text(url.scheme.as_str()))),
    member("getHost", 1, Str, |args, _| of_url("getHost", args, |url| Val::text(url.host.as_str()))),
    member("getHostname", 1, Str, |args, _| of_url("getHostname", args, |url| Val::text(url.hostname()))),
    member("getPort", 1, Str, |args, _| of_url("getPort", args, |url| Val::text(url.port()))),
    member("getEscapedPath", 1, Str, |args, _| {
        of_url("getEscapedPath", args, |url| Val::text(url.path.as_str()))
    }),
    member("getQuery", 1, MapType, |args, _| of_url("getQuery", args, query)),
    global("ip", 1, Object, |args, budget| {
        on_text("ip", args, budget, |text| match net::parse_ip(text) {
            Some(ip) => Ok(Val::Ip(ip)),
            None => Err(EvalError::failed(format!("IP Address {text:?} parse error"))),
        })
    }),
    global("isIP", 1, Bool, |args, budget| {
        on_text("isIP", args, budget, |text| Ok(Val::Bool(net::parse_ip(text).is_some())))
    }),
    global("ip.isCanonical", 1, Bool, |args, budget| {
        on_text("ip.isCanonical", args, budget, |text| match net::parse_ip(text) {
            Some(ip) => Ok(Val::Bool(ip.to_string() == text)),
            None => Err(EvalError::failed(format!("IP Address {text:?} parse error"))),
        })
    }),
    member("family", 1, Int, |args, _| {
        of_ip("family", args, |ip| Val::Int(if ip.is_ipv4() { 4 } else { 6 }))
    }),
    member("isUnspecified", 1, Bool, |args, _| {
        of_ip("isUnspecified", args, |ip| Val::Bool(ip.is_unspecified()))
    }),
    member("isLoopback", 1, Bool, |args, _| of_ip("isLoopback", args, |ip| Val::Bool(ip.is_loopback()))),
    member("isLinkLocalMulticast", 1, Bool, |args, _| {
        of_ip("isLinkLocalMulticast", args, |ip| Val::Bool(net::is_link_local_multicast(ip)))
    }),
    member("isLinkLocalUnicast", 1, Bool, |args, _| {
        of_ip("isLinkLocalUnicast", args, |ip| Val::Bool(net::is_link_local(ip)))
    }),
    member("isGlobalUnicast", 1, Bool, |args, _| {
        of_ip("isGlobalUnicast", args, |ip| Val::Bool(net::is_global_unicast(ip)))
    }),
    global("cidr", 1, Object, |args, budget| {
        on_text("cidr", args, budget, |text| Ok(Val::Cidr(cidr(text)?)))
    }),
    global("isCIDR", 1, Bool, |args, budget| {
        on_text("isCIDR", args, budget, |text| Ok(Val::Bool(Cidr::parse(text).is_some())))
    }),
    member("containsIP", 2, Bool, contains_ip),
    member("containsCIDR", 2, Bool, contains_cidr),
    member("ip", 1, Object, |args, _| of_cidr("ip", args, |cidr| Val::Ip(cidr.address))),
    member("masked", 1, Object, |args, _| of_cidr("masked", args, |cidr| Val::Cidr(cidr.masked()))),
    member("prefixLength", 1, Int, |args, _| {
        of_cidr("prefixLength", args, |cidr| Val::Int(cidr.prefix.into()))
    }),
    global("quantity", 1, Object, |args, budget| {
        on_text("quantity", args, budget, |text| match Quantity::parse(text) {
            Some(quantity) => Ok(Val::Quantity(quantity)),
            None => Err(EvalError::failed(
                "quantities must match the regular expression \
                '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            )),
        })
    }),
    global("isQuantity", 1, Bool, |args, budget| {
        on_text("isQuantity", args, budget, |text| Ok(Val::Bool(Quantity::parse(text).is_some())))
    }),
    member("add", 2, Object, |args, _| arithmetic("add", args, Quantity::plus)),
    member("sub", 2, Object, |args, _| arithmetic("sub", args, Quantity::minus)),
    member("sign", 1, Int, |args, _| of_quantity("sign", args, |quantity| Ok(Val::Int(quantity.sign())))),
    member("isInteger", 1, Bool, |args, _| {
        of_quantity("isInteger", args, |quantity| Ok(Val::Bool(quantity.as_integer().is_some())))
    }),
    member("asInteger", 1, Int, |args, _| {
        of_quantity("asInteger", args, |quantity| match quantity.as_integer() {
            Some(value) => Ok(Val::Int(value)),
            None => Err(EvalError::failed("cannot convert value to integer")),
        })
    }),
    member("asApproximateFloat", 1, Double, |args, _| {
        of_quantity("asApproximateFloat", args, |quantity| Ok(Val::Double(quantity.as_float())))
    }),
    member("compareTo", 2, Int, |args, _| {
        Ok(Val::Int(match order("compareTo", args)? {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }))
    }),
    member("isGreaterThan", 2, Bool, |args, _| Ok(Val::Bool(order("isGreaterThan", args)?.is_gt()))),
    member("isLessThan", 2, Bool, |args, _| Ok(Val::Bool(order("isLessThan", args)?.is_lt()))),
    global("semver", 1, Object, |args, budget| semver(args, budget, false)),
    global("semver", 2, Object, |args, budget| semver(args, budget, !args[1].is_zero())),
    global("isSemver", 1, Bool, |args, budget| Ok(Val::Bool(semver(args, budget, false).is_ok()))),
    global("isSemver", 2, Bool, |args, budget| {
        Ok(Val::Bool(semver(args, budget, !args[1].is_zero()).is_ok()))
    }),
    member("major", 1, Int, |args, _| number_of("major", args, 0)),
    member("minor", 1, Int, |args, _| number_of("minor", args, 1)),
    member("patch", 1, Int, |args, _| number_of("patch", args, 2)),
    global("format.named", 1, Optional, |args, budget| {
        on_text("format.named", args, budget, |text| {
            let known = FORMATS.iter().find(|(name, _)| *name == text);
            Ok(known.map_or(Val::Optional(None), |(name, _)| Val::some(Val::Format(name))))
        })
    }),
    global("format.dns1123Label", 0, Object, |_, _| Ok(Val::Format("dns1123Label"))),
    global("format.dns1123Subdomain", 0, Object, |_, _| Ok(Val::Format("dns1123Subdomain"))),
    global("format.dns1035Label", 0, Object, |_, _| Ok(Val::Format("dns1035Label"))),
    global("format.qualifiedName", 0, Object, |_, _| Ok(Val::Format("qualifiedName"))),
    global("format.labelValue", 0, Object, |_, _| Ok(Val::Format("labelValue"))),
    global("format.uri", 0, Object, |_, _| Ok(Val::Format("uri"))),
    global("format.uuid", 0, Object, |_, _| Ok(Val::Format("uuid"))),
    global("format.byte", 0, Object, |_, _| Ok(Val::Format("byte"))),
    global("format.date", 0, Object, |_, _| Ok(Val::Format("date"))),
    global("format.datetime", 0, Object, |_, _| Ok(Val::Format("datetime"))),
    member("validate", 2, Anything, validate),
];

fn of_url<'a>(name: &str, args: &[Val<'a>], part: impl FnOnce(&Url) -> Val<'a>) -> Evaluated<'a> {
    match args {
        [Val::Url(url)] => Ok(part(url)),
        _ => Err(EvalError::no_overload(name, args)),
    }
}

fn query<'a>(url: &Url) -> Val<'a> {
    let parameters = url
        .parameters()
        .into_iter()
        .map(|(name, values)| (Val::text(name), Val::list(values.into_iter().map(Val::text).collect())));
    Val::Map(Map::Own(Arc::new(parameters.collect())))
}

fn of_ip<'a>(name: &str, args: &[Val<'a>], part: impl FnOnce(net::Ip) -> Val<'a>) -> Evaluated<'a> {
    match args {
        [Val::Ip(ip)] => Ok(part(*ip)),
        _ => Err(EvalError::no_overload(name, args)),
    }
}

fn of_cidr<'a>(name: &str, args: &[Val<'a>], part: impl FnOnce(Cidr) -> Val<'a>) -> Evaluated<'a> {
    match args {
        [Val::Cidr(cidr)] => Ok(part(*cidr)),
        _ => Err(EvalError::no_overload(name, args)),
    }
}

fn cidr(text: &str) -> Result<Cidr, EvalError> {
    Cidr::parse(text).ok_or_else(|| EvalError::failed(format!("network address parse error: {text:?}")))
}

fn contains_ip<'a>(args: &[Val<'a>], _: &mut Budget) -> Evaluated<'a> {
    let (network, ip) = match args {
        [Val::Cidr(network), Val::Ip(ip)] => (network, *ip),
        [Val::Cidr(network), Val::Str(text)] => {
            let ip = net::parse_ip(text);
            (network, ip.ok_or_else(|| EvalError::failed(format!("IP Address {:?} parse error", &**text)))?)
        }
        _ => return Err(EvalError::no_overload("containsIP", args)),
    };
    Ok(Val::Bool(network.contains(ip)))
}

fn contains_cidr<'a>(args: &[Val<'a>], _: &mut Budget) -> Evaluated<'a> {
    let (network, other) = match args {
        [Val::Cidr(network), Val::Cidr(other)] => (network, *other),
        [Val::Cidr(network), Val::Str(text)] => (network, cidr(text)?),
        _ => return Err(EvalError::no_overload("containsCIDR", args)),
    };
    Ok(Val::Bool(network.contains_network(other)))
}

fn of_quantity<'a>(
    name: &str,
    args: &[Val<'a>],
    part: impl FnOnce(Quantity) -> Evaluated<'a>,
) -> Evaluated<'a> {
    match args {
        [Val::Quantity(quantity)] => part(*quantity),
        _ => Err(EvalError::no_overload(name, args)),
    }
}

fn arithmetic<'a>(
    name: &str,
    args: &[Val<'a>],
    operation: impl FnOnce(Quantity, Quantity) -> Quantity,
) -> Evaluated<'a> {
    let (a, b) = match args {
        [Val::Quantity(a), Val::Quantity(b)] => (*a, *b),
        [Val::Quantity(a), Val::Int(b)] => (*a, Quantity::whole(*b)),
        _ => return Err(EvalError::no_overload(name, args)),
    };
    Ok(Val::Quantity(operation(a, b)))
}

fn order(name: &str, args: &[Val<'_>]) -> Result<Ordering, EvalError> {
    match args {
        [Val::Quantity(a), Val::Quantity(b)] => Ok(a.cmp(b)),
        [Val::Semver(a), Val::Semver(b)] => Ok(a.compare(b)),
        _ => Err(EvalError::no_overload(name, args)),
    }
}

fn semver<'a>(args: &[Val<'a>], budget: &mut Budget, lenient: bool) -> Evaluated<'a> {
    on_text("semver", args, budget, |text| match Semver::parse(text, lenient) {
        Some(version) => Ok(Val::Semver(Arc::new(version))),
        None => Err(EvalError::failed(format!("{text:?} is no semantic version"))),
    })
}

fn number_of<'a>(name: &str, args: &[Val<'a>], at: usize) -> Evaluated<'a> {
    match args {
        [Val::Semver(version)] => Ok(Val::Int(i64::try_from(version.numbers[at]).unwrap_or(i64::MAX))),
        _ => Err(EvalError::no_overload(name, args)),
    }
}

/// Whether a text has a format.
type Test = fn(&str) -> bool;

/// The named formats, each with its test.
const FORMATS: &[(&str, Test)] = &[
    ("dns1123Label", format::is_dns_label),
    ("dns1123Subdomain", format::is_dns_subdomain),
    ("dns1035Label", |text| format::is_dns_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase())),
    ("qualifiedName", is_qualified_name),
    ("labelValue", |text| text.is_empty() || is_name_part(text)),
    ("uri", |text| Format::Uri.matches(text)),
    ("uuid", |text| Format::Uuid.matches(text)),
    ("byte", |text| Format::Byte.matches(text)),
    ("date", |text| Format::Date.matches(text)),
    ("datetime", |text| Format::DateTime.matches(text)),
];

fn is_name_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    bytes.len() <= 63
        && ends.iter().all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => format::is_dns_subdomain(prefix) && is_name_part(name),
        None => is_name_part(text),
    }
}

/// `format.x().validate(text)`: nothing if the text has the format, else what is wrong with it.
fn validate<'a>(args: &[Val<'a>], budget: &mut Budget) -> Evaluated<'a> {
    let [Val::Format(name), Val::Str(text)] = args else {
        return Err(EvalError::no_overload("validate", args));
    };
    budget.charge_bytes(text.len())?;
    let holds = FORMATS.iter().any(|(known, test)| known == name && test(text));
    if holds {
        return Ok(Val::Optional(None));
    }
    Ok(Val::some(Val::list(vec![Val::text(format!("must be a valid {name}"))])))
}
