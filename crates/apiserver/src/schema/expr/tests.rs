//! Tests of expressions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;
use crate::schema::{Schema, Type};

fn eval(source: &str, value: &Value) -> Result<bool, String> {
    let program = Program::compile(source, &["self", "oldSelf"]).map_err(|error| error.to_string())?;
    program.eval_bool(&[("self", value), ("oldSelf", value)]).map_err(|error| error.to_string())
}

#[track_caller]
fn holds(value: &Value, sources: &[&str]) {
    for source in sources {
        assert_eq!(eval(source, value), Ok(true), "{source}");
    }
}

#[test]
fn operators_and_macros() {
    let value = json!({
        "a": 1, "b": "text", "list": [1, 2, 3], "map": {"x": "y"}, "f": 1.5, "t": true, "n": null,
        "items": [{"name": "one", "v": 1}, {"name": "two", "v": 2}], "primary": "two", "empty": [],
    });
    holds(
        &value,
        &[
            "self.a == 1 && self.b == 'text' && self.f == 1.5 && self.t",
            "self.a + 2 * 3 == 7 && 7 / 2 == 3 && 7 % 4 == 3 && -self.a == -1 && 2 - 5 == -3",
            "1 < 2 && 1 < 1.5 && 2u > 1 && 1 <= 1.0 && 'a' < 'b' && 3u >= 3.0",
            "self.list[1] == 2 && self.map['x'] == 'y' && self['a'] == 1 && self.map.x == 'y'",
            "has(self.a) && !has(self.z) && has(self.map.x) && !has(self.map.y)",
            "self.n == null && self.a != null",
            "2 in self.list && !(9 in self.list) && 'x' in self.map && 'b' in ['a', 'b']",
            "self.list.all(x, x > 0) && self.list.exists(x, x == 2) && self.list.exists_one(x, x == 2)",
            "!self.list.all(x, x > 1) && !self.list.exists(x, x > 5) && !self.list.exists_one(x, x > 1)",
            "self.list.map(x, x * 2) == [2, 4, 6] && self.list.map(x, x > 1, x) == [2, 3]",
            "self.list.filter(x, x > 1) == [2, 3] && self.empty.all(x, false) && !self.empty.exists(x, true)",
            "self.map.all(k, k == 'x') && self.map.map(k, self.map[k]) == ['y']",
            "self.items.exists(i, i.name == self.primary)",
            "self.items.all(i, self.items.exists_one(j, j.name == i.name))",
            "self.list.all(i, v, v == i + 1) && self.map.exists(k, v, k == 'x' && v == 'y')",
            "self.list.transformList(i, v, i * v) == [0, 2, 6]",
            "true || self.missing && (self.missing || true)",
            "self.missing || true",
            "!(self.missing && false)",
            "self.list + [4] == [1, 2, 3, 4] && 'a' + 'b' == 'ab'",
            "(self.a > 0 ? 'yes' : 'no') == 'yes'",
            "{'a': 1, 'b': 2} == {'b': 2, 'a': 1} && {'a': 1}.a == 1 && {1: 'x'}[1] == 'x'",
            "[1, 2.0, 3u] == [1.0, 2, 3] && 1 == 1.0",
            "cel.bind(x, self.a + 1, x * x) == 4",
            "dyn(self.a) == 1 && type(self.a) == int && type('') == string && type([]) == list",
            "r\"\"\"a\\d\"\"\" == 'a\\\\d'",
            "9007199254740993 > 9007199254740992.0 && 9223372036854775807 < 9223372036854775808.0",
        ],
    );
    for source in ["self.missing", "[1][1] == 1", "{'a': 1}['b'] == 1", "1 / 0 == 1", "1 + 1.0 == 2.0"] {
        assert!(eval(source, &value).is_err(), "{source}");
    }
    for source in
        ["9223372036854775807 + 1 > 0", "-9223372036854775807 - 2 < 0", "1 + 'a' == ''", "1 % 0 == 0"]
    {
        assert!(eval(source, &value).is_err(), "{source}");
    }
}

#[test]
fn optionals() {
    holds(
        &json!({"a": {"b": 1}, "l": [1], "m": {"k": "v"}}),
        &[
            "self.?a.b.orValue(0) == 1 && self.?x.b.orValue(7) == 7 && self.?a.?c.orValue(2) == 2",
            "self.l[?0].orValue(0) == 1 && self.l[?3].orValue(9) == 9 && self.m[?'k'].orValue('') == 'v'",
            "self.?a.hasValue() && !self.?x.hasValue() && self.?a.b.value() == 1",
            "optional.of(1).hasValue() && !optional.none().hasValue()",
            "optional.ofNonZeroValue(0) == optional.none() && optional.ofNonZeroValue(2).value() == 2",
            "self.?x.or(self.?a).hasValue()",
            "self.?a.optMap(a, a.b + 1).orValue(0) == 2 && self.?a.optFlatMap(a, a.?b).value() == 1",
            "[?self.?x, ?self.?a.b] == [1] && {?'x': self.?x, 'y': 1} == {'y': 1}",
        ],
    );
    assert!(eval("optional.none().value()", &Value::Null).is_err());
}

#[test]
fn standard_functions() {
    holds(
        &json!({"s": "héllo", "l": [3, 1, 2], "d": 1.5}),
        &[
            "size(self.s) == 5 && self.s.size() == 5 && size(self.l) == 3 && {}.size() == 0 && size(b'ab') == 2",
            "int('12') == 12 && int(1.9) == 1 && uint(3) == 3u && double('1.5') == 1.5 && double(2) == 2.0",
            "string(1) == '1' && string(1.5) == '1.5' && string(true) == 'true' && bool('true')",
            "string(b'abc') == 'abc' && bytes('abc') == b'abc'",
            "'abc'.startsWith('ab') && 'abc'.endsWith('bc') && 'abc'.contains('b') && 'abc'.matches('^a.c$')",
            "matches('abc', 'b') && self.s.matches('h' + '.llo')",
            "'a1b22'.find('[0-9]+') == '1' && 'a1b22'.findAll('[0-9]+') == ['1', '22']",
            "'a1b22'.findAll('[0-9]+', 1) == ['1'] && 'abc'.find('x') == ''",
            "duration('1h30m') == duration('90m') && duration('1h').getMinutes() == 60",
            "timestamp('2024-02-29T12:30:45Z').getFullYear() == 2024",
            "timestamp('2024-02-29T12:30:45Z').getMonth() == 1 && timestamp('2024-02-29T12:30:45Z').getDate() == 29",
            "timestamp('2024-02-29T12:30:45Z').getHours('+02:00') == 14",
            "timestamp('2024-02-29T12:30:45Z').getDayOfWeek() == 4",
            "timestamp('2024-01-01T00:00:00Z') + duration('24h') == timestamp('2024-01-02T00:00:00Z')",
            "timestamp('2024-01-02T00:00:00Z') - timestamp('2024-01-01T00:00:00Z') == duration('24h')",
            "timestamp('2024-01-02T00:00:00Z') > timestamp('2024-01-01T00:00:00Z')",
            "string(duration('90s')) == '90s' && string(duration('-1500ms')) == '-1.5s'",
            "string(timestamp('2024-01-02T00:00:00Z')) == '2024-01-02T00:00:00Z'",
        ],
    );
}

#[test]
fn string_functions() {
    holds(
        &json!({"s": "héllo"}),
        &[
            "self.s.charAt(1) == 'é' && self.s.charAt(5) == '' && self.s.indexOf('l') == 2",
            "self.s.lastIndexOf('l') == 3 && self.s.indexOf('l', 3) == 3 && self.s.indexOf('z') == -1",
            "self.s.lastIndexOf('l', 2) == 2 && ''.indexOf('') == 0",
            "['a', 'b'].join() == 'ab' && ['a', 'b'].join('-') == 'a-b' && [].join('x') == ''",
            "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']",
            "'abc'.split('') == ['a', 'b', 'c'] && 'abc'.split('', 2) == ['a', 'bc'] && 'abc'.split('b', 0) == []",
            "'AbC'.lowerAscii() == 'abc' && 'AbC'.upperAscii() == 'ABC'",
            "'aXbX'.replace('X', '-') == 'a-b-' && 'aXbX'.replace('X', '-', 1) == 'a-bX'",
            "self.s.substring(1) == 'éllo' && self.s.substring(1, 3) == 'él' && ' a '.trim() == 'a'",
            "strings.quote('a\"b') == '\"a\\\\\"b\"' && 'abc'.reverse() == 'cba'",
            "'%s has %d of %.2f%%: %s'.format(['x', 3, 1.5, [1, 'a']]) == 'x has 3 of 1.50%: [1, a]'",
            "'%x %X %o %b %e'.format([255, 255, 8, 5, 1500.0]) == 'ff FF 10 101 1.500000e+03'",
        ],
    );
    for source in [
        "'abc'.charAt(4) == ''",
        "'abc'.substring(2, 1) == ''",
        "'%d'.format(['x']) == ''",
        "'%s'.format([]) == ''",
    ] {
        assert!(eval(source, &Value::Null).is_err(), "{source}");
    }
}

#[test]
fn list_functions() {
    holds(
        &json!({"l": [1, 3, 2, 3]}),
        &[
            "!self.l.isSorted() && [1, 2, 2].isSorted() && ['a', 'b'].isSorted() && [].isSorted()",
            "self.l.sum() == 9 && [1.5, 2.5].sum() == 4.0 && [].sum() == 0",
            "self.l.min() == 1 && self.l.max() == 3 && ['b', 'a'].min() == 'a'",
            "self.l.indexOf(3) == 1 && self.l.lastIndexOf(3) == 3 && self.l.indexOf(9) == -1",
            "sets.contains([1, 2, 3], [2, 1]) && !sets.contains([1], [2]) && sets.contains([], [])",
            "sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [2])",
            "sets.equivalent([1, 2, 2], [2, 1]) && !sets.equivalent([1], [1, 2])",
            "[[1], [2, 3]].flatten() == [1, 2, 3] && [1, 2, 1].distinct() == [1, 2] && [1, 2, 3].slice(1, 2) == [2]",
        ],
    );
    assert!(eval("[].max() == 1", &Value::Null).is_err());
}

#[test]
fn kubernetes_functions() {
    holds(
        &Value::Null,
        &[
            "url('https://a.b:80/p?x=1').getHost() == 'a.b:80' && url('https://a.b:80/').getPort() == '80'",
            "url('https://a.b/p').getScheme() == 'https' && url('https://[::1]:8/').getHostname() == '::1'",
            "url('https://a.b/p q').getEscapedPath() == '/p%20q' && url('http://a/?x=1&x=2').getQuery()['x'] == ['1', '2']",
            "isURL('https://a.b') && !isURL('a b') && isURL('/x')",
            "ip('10.0.0.1').family() == 4 && ip('::1').isLoopback() && isIP('1.2.3.4') && !isIP('1.2.3')",
            "ip.isCanonical('::1') && !ip.isCanonical('0::1') && ip('fe80::1').isLinkLocalUnicast()",
            "cidr('10.0.0.0/8').containsIP('10.1.1.1') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
            "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')",
            "cidr('10.0.0.0/8').prefixLength() == 8 && cidr('10.1.2.3/8').ip() == ip('10.1.2.3') && isCIDR('::/0')",
            "string(ip('::1')) == '::1' && string(cidr('10.0.0.0/8')) == '10.0.0.0/8'",
            "quantity('1Ki') == quantity('1024') && quantity('2').isGreaterThan(quantity('1500m'))",
            "quantity('1').isLessThan(quantity('2')) && quantity('1').compareTo(quantity('1')) == 0",
            "quantity('1').add(quantity('500m')).sub(1).asApproximateFloat() == 0.5 && quantity('3').asInteger() == 3",
            "!quantity('1500m').isInteger() && quantity('-1').sign() == -1 && isQuantity('5Gi') && !isQuantity('x')",
            "semver('1.2.3').major() == 1 && semver('1.10.0').isGreaterThan(semver('1.9.0')) && !isSemver('1.2')",
            "isSemver('v1.2', true) && semver('1.0.0').compareTo(semver('1.0.0-rc.1')) == 1",
            "!format.dns1123Label().validate('abc').hasValue() && format.dns1123Label().validate('A').hasValue()",
            "format.named('uuid').value().validate('x').hasValue() && !format.named('nope').hasValue()",
        ],
    );
}

#[test]
fn what_cannot_be_is_refused_when_compiled() {
    for (source, words) in [
        ("self.", "Syntax error"),
        ("foo == 1", "undeclared reference to 'foo'"),
        ("self.foo(1)", "undeclared reference to 'foo'"),
        ("nosuch(self)", "undeclared reference to 'nosuch'"),
        ("size(1, 2, 3) == 1", "no matching overload for 'size'"),
        ("self.matches('(')", "error parsing regexp"),
        ("self.find('[') == ''", "error parsing regexp"),
        ("1 + 1", "must evaluate to bool"),
        ("'a' == 1", "found no matching overload for '_==_'"),
        ("!'a'", "expected type 'bool'"),
        ("has(self)", "invalid argument to has()"),
        ("self.all(x.y, true)", "simple name"),
        ("Foo{a: 1} == 1", "undeclared reference to 'Foo'"),
        ("self.a.namespace == namespace", "reserved identifier"),
    ] {
        let error = Program::compile(source, &["self"]).expect_err(source).to_string();
        assert!(error.contains(words), "{source}: {error}");
    }
    let error = Program::compile("true &&\n  foo", &["self"]).expect_err("undeclared").to_string();
    assert!(error.starts_with("ERROR: <input>:2:3: undeclared"), "{error}");
}

fn typed() -> Schema {
    let compiled = crate::schema::compile::compile(
        &json!({
            "type": "object",
            "properties": {
                "n": {"type": "integer"},
                "f": {"type": "number"},
                "when": {"type": "string", "format": "date-time"},
                "wait": {"type": "string", "format": "duration"},
                "data": {"type": "string", "format": "byte"},
                "port": {"x-kubernetes-int-or-string": true},
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "list": {
                    "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                    "items": {
                        "type": "object", "required": ["k"],
                        "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
                    },
                },
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "namespace": {"type": "string"},
                "a-b.c/d": {"type": "string"},
                "x__y": {"type": "string"},
                "__dot__": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            },
        }),
        "",
    );
    compiled.expect("a sound schema")
}

#[test]
fn values_have_the_types_of_their_schema() {
    let schema = typed();
    let value = json!({
        "n": 1, "f": 2, "when": "2024-01-01T00:00:00Z", "wait": "90s", "data": "YWJj", "port": "http",
        "set": ["a", "b"], "list": [{"k": "x", "v": 1}, {"k": "y", "v": 2}], "labels": {"in": "z"},
        "namespace": "ns", "a-b.c/d": "escaped", "x__y": "u", "metadata": {"name": "me"},
    });
    let other = json!({"set": ["b", "a"], "list": [{"k": "y", "v": 2}, {"k": "x", "v": 1}]});
    for source in [
        "self.f / 4.0 == 0.5 && self.n / 4 == 0",
        "self.when.getFullYear() == 2024 && self.wait == duration('1m30s') && self.data == b'abc'",
        "self.port == 'http' && type(self.port) == string",
        "self.set == oldSelf.set && self.list == oldSelf.list",
        "(self.set + ['b', 'c']).size() == 3 && (self.list + [{'k': 'x', 'v': 5}]).size() == 2",
        "(self.list + [{'k': 'x', 'v': 5}])[0].v == 5",
        "self.__namespace__ == 'ns' && self.a__dash__b__dot__c__slash__d == 'escaped' && self.`a-b.c/d` == 'escaped'",
        "self.x__underscores__y == 'u' && self.metadata.name == 'me' && self.labels['in'] == 'z'",
        "!has(self.__dot__) || self.__dot__.anything == 1",
    ] {
        let variables = [("self", Known::Schema(&schema)), ("oldSelf", Known::Schema(&schema))];
        let program = Program::compile_typed(source, &variables, Scalar::Bool, true);
        let program = program.unwrap_or_else(|error| panic!("{source}: {error}"));
        let values = [
            ("self", Val::from_json(&value, Some(&schema))),
            ("oldSelf", Val::from_json(&other, Some(&schema))),
        ];
        let result = program.eval(&values, &mut Budget::new(RULE_BUDGET));
        assert!(matches!(result, Ok(Val::Bool(true))), "{source}: {result:?}");
    }
    for (source, words) in [
        ("self.nope == 1", "undefined field 'nope'"),
        ("has(self.nope)", "undefined field 'nope'"),
        ("self.list.all(x, x.nope == 1)", "undefined field 'nope'"),
        ("self.?nope.hasValue()", "undefined field 'nope'"),
        ("self.metadata.labels == {}", "undefined field 'labels'"),
        ("self.n == 'x'", "no matching overload"),
        ("self.n + self.f > 1.0", "no matching overload"),
        ("self.n.foo == 1", "does not support field selection"),
        ("self.n in self.set", "no matching overload"),
        ("self.n.all(x, true)", "cannot be range"),
        ("self.labels.all(k, k == 1)", "no matching overload"),
    ] {
        let variables = [("self", Known::Schema(&schema))];
        let error =
            Program::compile_typed(source, &variables, Scalar::Bool, true).expect_err(source).to_string();
        assert!(error.contains(words), "{source}: {error}");
    }
}

#[test]
fn work_is_bounded() {
    let list: Vec<u32> = (0..20_000).collect();
    let text = "a".repeat(1 << 20);
    let value = json!({"l": list, "s": text, "k": (0..300).map(|n| n.to_string()).collect::<Vec<_>>()});
    for source in [
        "self.l.all(a, self.l.all(b, self.l.all(c, true)))",
        "self.l.map(a, self.l).map(a, a.map(b, self.l)).size() == 0",
        "self.l.all(x, self == self)",
        "self.l.all(x, self.s.contains('b') || true)",
        "self.l.all(x, self.s.matches('(a*)*b') || true)",
        "self.l.map(x, self.s + self.s).size() == 0",
        "self.s.replace('', self.s).size() == 0",
        "self.s.replace('a', self.s).size() == 0",
        "self.l.all(x, self.s.split('').size() > 0)",
        "self.l.all(x, 'x'.matches(self.k.join('|')) || true)",
        "self.l.all(x, self.l.map(y, [y]).flatten().distinct().size() > 0)",
        "self.l.map(x, '%s%s'.format([self.l, self.l])).size() == 0",
        "self.s.findAll('a').map(x, self.s.findAll('a')).size() == 0",
        "sets.contains(self.l, self.l) && sets.equivalent(self.l.map(x, x + 100000), self.l)",
    ] {
        let program = Program::compile(source, &["self"]).unwrap_or_else(|error| panic!("{source}: {error}"));
        let started = Instant::now();
        let result = program.eval_bool(&[("self", &value)]);
        assert_eq!(result, Err(EvalError::OverBudget), "{source}");
        // Debug builds are some twenty times slower than what the budget is meant for.
        assert!(started.elapsed() < Duration::from_secs(3), "{source} took {:?}", started.elapsed());
    }
}

#[test]
fn hostile_sources_are_refused_in_time() {
    let chain = |unit: &str, count: usize| format!("self{}", unit.repeat(count));
    let sources = [
        format!("{}true{}", "(".repeat(2_000), ")".repeat(2_000)),
        chain(".a", 8_100),
        chain("[0]", 5_400),
        chain(".a()", 4_000),
        chain("+1", 8_100),
        chain("<1", 8_100),
        chain("||a", 5_400),
        format!("[{}1]", "1,".repeat(8_000)),
        format!("f({}1)", "1,".repeat(8_000)),
        "{1:".repeat(90),
        format!("{}1{}", "(1+".repeat(90), ")".repeat(90)),
        chain(".all(x, x", 300),
        format!("{}true", "!".repeat(8_000)),
        format!("{}self", "-".repeat(8_000)),
        "[".repeat(5_000),
        format!("{}1{}", "[".repeat(60), "]".repeat(60)),
        chain(" ? self : self", 500),
        "a".repeat(20_000),
        "\u{0}\u{ffff}'".to_owned(),
        "'unclosed".to_owned(),
        String::new(),
    ];
    for source in sources {
        let started = Instant::now();
        // An even number of signs cancels out; everything else is wrong or too deep.
        let compiles = source.starts_with(['!', '-']);
        assert_eq!(Program::compile(&source, &["self"]).is_ok(), compiles, "{source:.30}");
        assert!(started.elapsed() < Duration::from_secs(10), "{source:.30} took {:?}", started.elapsed());
    }
}

#[test]
fn variables_are_checked() {
    let program =
        Program::compile("object.spec.x == 1 && request.user == 'a'", &["object", "oldObject", "request"]);
    let program = program.expect("compiles");
    assert!(program.uses("object") && !program.uses("oldObject"));
    let (object, request) = (json!({"spec": {"x": 1}}), json!({"user": "a"}));
    assert_eq!(program.eval_bool(&[("object", &object), ("request", &request)]), Ok(true));
    assert_eq!(program.eval_bool(&[("object", &object)]), Err(EvalError::NoVariable("request".to_owned())));
    assert!(eval("1 == 1", &Value::Null).is_ok());
    let schema = Arc::new(Schema::of(Type::String));
    assert!(Known::of(&schema).may_be(Scalar::String));
}
