//! Points in time and durations.

use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, Zoned};

use super::Returns::{Duration, Int, Timestamp as Time};
use super::{Definition, Evaluated, global, member};
use crate::schema::constraints::format;
use crate::schema::expr::eval::{Budget, EvalError};
use crate::schema::expr::value::Val;

pub(super) const TABLE: &[Definition] = &[
    global("timestamp", 1, Time, timestamp),
    global("duration", 1, Duration, duration),
    member("getFullYear", 1, Int, |args, _| part("getFullYear", args, |at| at.year().into())),
    member("getFullYear", 2, Int, |args, _| part("getFullYear", args, |at| at.year().into())),
    member("getMonth", 1, Int, |args, _| part("getMonth", args, |at| i64::from(at.month()) - 1)),
    member("getMonth", 2, Int, |args, _| part("getMonth", args, |at| i64::from(at.month()) - 1)),
    member("getDate", 1, Int, |args, _| part("getDate", args, |at| at.day().into())),
    member("getDate", 2, Int, |args, _| part("getDate", args, |at| at.day().into())),
    member("getDayOfMonth", 1, Int, |args, _| part("getDayOfMonth", args, |at| i64::from(at.day()) - 1)),
    member("getDayOfMonth", 2, Int, |args, _| part("getDayOfMonth", args, |at| i64::from(at.day()) - 1)),
    member("getDayOfWeek", 1, Int, |args, _| part("getDayOfWeek", args, weekday)),
    member("getDayOfWeek", 2, Int, |args, _| part("getDayOfWeek", args, weekday)),
    member("getDayOfYear", 1, Int, |args, _| {
        part("getDayOfYear", args, |at| i64::from(at.day_of_year()) - 1)
    }),
    member("getDayOfYear", 2, Int, |args, _| {
        part("getDayOfYear", args, |at| i64::from(at.day_of_year()) - 1)
    }),
    member("getHours", 1, Int, |args, _| clock("getHours", args, |at| at.hour().into(), 3_600_000)),
    member("getHours", 2, Int, |args, _| part("getHours", args, |at| at.hour().into())),
    member("getMinutes", 1, Int, |args, _| clock("getMinutes", args, |at| at.minute().into(), 60_000)),
    member("getMinutes", 2, Int, |args, _| part("getMinutes", args, |at| at.minute().into())),
    member("getSeconds", 1, Int, |args, _| clock("getSeconds", args, |at| at.second().into(), 1_000)),
    member("getSeconds", 2, Int, |args, _| part("getSeconds", args, |at| at.second().into())),
    member("getMilliseconds", 1, Int, |args, _| match args {
        [Val::Duration(duration)] => Ok(Val::Int(i64::from(duration.subsec_millis()))),
        _ => part("getMilliseconds", args, |at| at.millisecond().into()),
    }),
    member("getMilliseconds", 2, Int, |args, _| part("getMilliseconds", args, |at| at.millisecond().into())),
];

fn timestamp<'a>(args: &[Val<'a>], _: &mut Budget) -> Evaluated<'a> {
    let time = match &args[0] {
        Val::Timestamp(time) => Some(*time),
        Val::Int(seconds) => Timestamp::from_second(*seconds).ok(),
        Val::Str(text) => format::date_time(text),
        _ => return Err(EvalError::no_overload("timestamp", args)),
    };
    time.map(Val::Timestamp).ok_or_else(|| EvalError::failed("invalid timestamp"))
}

fn duration<'a>(args: &[Val<'a>], _: &mut Budget) -> Evaluated<'a> {
    let duration = match &args[0] {
        Val::Duration(duration) => Some(*duration),
        Val::Int(nanos) => Some(SignedDuration::from_nanos(*nanos)),
        Val::Str(text) => format::go_duration(text),
        _ => return Err(EvalError::no_overload("duration", args)),
    };
    duration.map(Val::Duration).ok_or_else(|| EvalError::failed("invalid duration"))
}

fn weekday(at: &Zoned) -> i64 {
    at.weekday().to_sunday_zero_offset().into()
}

/// A part of a time, in UTC or in the zone that is the second argument.
fn part<'a>(name: &str, args: &[Val<'a>], part: impl FnOnce(&Zoned) -> i64) -> Evaluated<'a> {
    let (time, zone) = match args {
        [Val::Timestamp(time)] => (time, TimeZone::UTC),
        [Val::Timestamp(time), Val::Str(name)] => (time, zone(name)?),
        _ => return Err(EvalError::no_overload(name, args)),
    };
    Ok(Val::Int(part(&time.to_zoned(zone))))
}

/// A part of a time, or how many whole such units a duration has.
fn clock<'a>(
    name: &str,
    args: &[Val<'a>],
    of_time: impl FnOnce(&Zoned) -> i64,
    unit_millis: i128,
) -> Evaluated<'a> {
    match args {
        [Val::Duration(duration)] => Ok(Val::Int((duration.as_millis() / unit_millis) as i64)),
        _ => part(name, args, of_time),
    }
}

/// A zone by its name, or by its offset from UTC (`+02:00`).
fn zone(name: &str) -> Result<TimeZone, EvalError> {
    let unknown = || EvalError::failed(format!("unknown time zone {name}"));
    let offset = || {
        let (negative, text) = match name.strip_prefix('-') {
            Some(text) => (true, text),
            None => (false, name.strip_prefix('+').unwrap_or(name)),
        };
        let (hours, minutes) = text.split_once(':')?;
        let seconds = hours.parse::<u8>().ok().map(i32::from)? * 3_600
            + minutes.parse::<u8>().ok().map(i32::from)? * 60;
        Offset::from_seconds(if negative { -seconds } else { seconds }).ok()
    };
    match name.contains(':') {
        true => offset().map(TimeZone::fixed).ok_or_else(unknown),
        false => TimeZone::get(name).map_err(|_| unknown()),
    }
}
