//! `x-mcp-header`: which schemas are valid, what a call repeats, what a server compares.

use http::HeaderValue;

use super::*;

fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned().into()).unwrap()
}

fn marks(schema: &str) -> Result<ParamHeaders, BadMark> {
    ParamHeaders::of_schema(&raw(schema))
}

fn mirrored(schema: &str, arguments: &str) -> Vec<(String, String)> {
    let headers = marks(schema).unwrap().mirror(Some(&raw(arguments))).unwrap();
    let shown = |(name, value): (&HeaderName, &HeaderValue)| {
        (name.as_str().to_owned(), value.to_str().unwrap().to_owned())
    };
    headers.iter().map(shown).collect()
}

/// The example of the page.
const SQL: &str = r#"{"type":"object","properties":{
    "region":{"type":"string","description":"The region","x-mcp-header":"Region"},
    "query":{"type":"string"}},"required":["region","query"]}"#;

const THREE: &str = r#"{"type":"object","properties":{
    "count":{"type":"integer","x-mcp-header":"Count"},
    "dry":{"type":["boolean","null"],"x-mcp-header":"Dry-Run"},
    "where":{"type":"object","properties":{
        "zone":{"type":"string","x-mcp-header":"Zone"},
        "x-mcp-header":{"type":"string"}}}}}"#;

#[test]
fn u25_the_example_of_the_page() {
    let call = r#"{"region":"us-west1","query":"SELECT * FROM users"}"#;
    assert_eq!(mirrored(SQL, call), [("mcp-param-region".into(), "us-west1".into())]);
}

/// U-25: null and absent are left out, empty is empty, the rest is written as the page says.
#[test]
fn u25_values_become_headers() {
    let of = |arguments: &str| {
        let mut headers = mirrored(THREE, arguments);
        headers.sort();
        let values: Vec<String> = headers
            .into_iter()
            .map(|(name, value)| format!("{}={value}", name.trim_start_matches(PARAM_PREFIX)))
            .collect();
        values.join(" ")
    };
    assert_eq!(of("{}"), "");
    assert_eq!(of(r#"{"count":null,"where":{"zone":null}}"#), "");
    assert_eq!(
        of(r#"{"count":42,"dry":false,"where":{"zone":""}}"#),
        "count=42 dry-run=false zone="
    );
    assert_eq!(
        of(r#"{"count":-7.0,"where":{"zone":"Hello, 世界"}}"#),
        "count=-7 zone==?base64?SGVsbG8sIOS4lueVjA==?="
    );
    assert_eq!(of(r#"{"count":1e3,"where":{"zone":" a\n"}}"#), "count=1000 zone==?base64?IGEK?=");
    assert_eq!(of(r#"{"count":9007199254740991}"#), "count=9007199254740991");
    assert_eq!(of(r#"{"count":-9007199254740991}"#), "count=-9007199254740991");
    // What is not where the schema says is not there.
    assert_eq!(of(r#"{"zone":"a","where":"b"}"#), "");
    assert!(marks(THREE).unwrap().mirror(None).unwrap().is_empty());
}

/// U-25: what the server would refuse is not sent.
#[test]
fn u25_values_that_cannot_be_repeated() {
    for arguments in [
        r#"{"count":9007199254740992}"#,
        r#"{"count":-9007199254740992}"#,
        r#"{"count":1e400}"#,
        r#"{"count":123456789012345678901234567890}"#,
        r#"{"count":1.5}"#,
        r#"{"count":"42"}"#,
        r#"{"count":[1]}"#,
        r#"{"dry":"yes"}"#,
        r#"{"dry":1}"#,
        r#"{"where":{"zone":7}}"#,
    ] {
        let error = marks(THREE).unwrap().mirror(Some(&raw(arguments))).unwrap_err();
        assert_eq!(error.code, -32602, "{arguments}");
        assert!(error.message.contains("a header repeats it"), "{}", error.message);
    }
}

/// U-23: what makes a mark, and with it the tool, invalid; and where.
#[test]
fn u23_bad_marks() {
    let property = |inner: &str| format!(r#"{{"type":"object","properties":{{"a":{{{inner}}}}}}}"#);
    let cases = [
        (property(r#""type":"string","x-mcp-header":"""#), "cannot be part"),
        (property(r#""type":"string","x-mcp-header":"My Region""#), "cannot be part"),
        (property(r#""type":"string","x-mcp-header":"Region:1""#), "cannot be part"),
        (property(r#""type":"string","x-mcp-header":"a\r\nb""#), "cannot be part"),
        (property(r#""type":"string","x-mcp-header":"Größe""#), "cannot be part"),
        (property(r#""type":"string","x-mcp-header":7"#), "not a string"),
        (property(r#""type":"string","x-mcp-header":null"#), "not a string"),
        (property(r#""type":"number","x-mcp-header":"A""#), "no integer"),
        (property(r#""type":"object","x-mcp-header":"A""#), "no integer"),
        (property(r#""type":"array","x-mcp-header":"A""#), "no integer"),
        (property(r#""type":"null","x-mcp-header":"A""#), "no integer"),
        (property(r#""type":["string","integer"],"x-mcp-header":"A""#), "no integer"),
        (property(r#""x-mcp-header":"A""#), "no integer"),
        (property(r#""type":"array","items":{"type":"string","x-mcp-header":"A"}"#), "a/items"),
        (property(r#""anyOf":[{"type":"string","x-mcp-header":"A"}]"#), "a/anyOf/0"),
        (property(r#""not":{"type":"string","x-mcp-header":"A"}"#), "properties` alone"),
        (property(r#""if":{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}"#), "a/if"),
        (property(r#""patternProperties":{"^b":{"type":"string","x-mcp-header":"A"}}"#), "^b"),
        (r#"{"type":"object","x-mcp-header":"A"}"#.to_owned(), "at # "),
        (r#"{"$defs":{"d":{"type":"string","x-mcp-header":"A"}}}"#.to_owned(), "#/$defs/d"),
        (
            r#"{"oneOf":[{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}]}"#.to_owned(),
            "#/oneOf/0/properties/b",
        ),
        (
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"R"},
            "b":{"properties":{"c":{"type":"string","x-mcp-header":"r"}}}}}"#
                .to_owned(),
            "twice",
        ),
        (property(r#""type":"string","\u0078-mcp-header":"""#), "cannot be part"),
    ];
    for (schema, why) in cases {
        let bad = marks(&schema).unwrap_err().to_string();
        assert!(bad.contains(why), "{schema}: {bad} lacks {why}");
    }
}

/// U-23: a property of that name and data are no marks; schemas that are no objects are none either.
#[test]
fn u23_what_only_looks_like_a_mark() {
    for schema in [
        r#"{"properties":{"x-mcp-header":{"type":"number"}}}"#,
        r#"{"properties":{"a":{"default":{"x-mcp-header":""},"enum":[{"x-mcp-header":1}]}}}"#,
        r#"{"description":"see x-mcp-header\"","properties":{}}"#,
        "true",
        "null",
        "[]",
    ] {
        assert_eq!(marks(schema), Ok(ParamHeaders::default()), "{schema}");
    }
}

/// A schema is looked through for as long as its text is, and no longer than the limits say.
#[test]
fn u23_the_walk_is_bounded() {
    let deep = |levels: usize| {
        let open = r#"{"properties":{"a":"#.repeat(levels);
        marks(&format!(
            "{open}{{\"type\":\"string\",\"x-mcp-header\":\"A\"}}{}",
            "}}".repeat(levels)
        ))
    };
    assert!(deep(60).is_ok());
    assert_eq!(deep(70), Err(BadMark::TooMuch));
    let many = |count: usize| {
        let one = |n| format!(r#""p{n}":{{"type":"string","x-mcp-header":"H{n}"}}"#);
        let all: Vec<String> = (0..count).map(one).collect();
        marks(&format!("{{\"properties\":{{{}}}}}", all.join(",")))
    };
    assert_eq!(many(MARKS).unwrap().0.len(), MARKS);
    assert_eq!(many(MARKS + 1), Err(BadMark::TooMuch));
}

/// U-24: one bad tool goes, with its name and reason; the others stay as they came.
#[test]
fn u24_bad_tools_are_sorted_out() {
    let tool =
        |name: &str, schema: &str| raw(&format!(r#"{{"name":"{name}","inputSchema":{schema}}}"#));
    let bad = r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#;
    let admitted = admit(vec![
        tool("one", SQL),
        tool("bad", bad),
        tool("plain", "{}"),
        raw(r#"{"name":"none"}"#),
    ]);
    let names: Vec<_> =
        admitted.tools.iter().map(|tool| tool.member_str("name").unwrap()).collect();
    assert_eq!(names, ["one", "plain", "none"]);
    assert_eq!(admitted.marked.keys().collect::<Vec<_>>(), ["one"]);
    let [excluded] = admitted.excluded.as_slice() else { panic!("{:?}", admitted.excluded) };
    assert_eq!(excluded.tool, "bad");
    assert!(excluded.why.to_string().contains("#/properties/a"));
}

/// The server's half: the table of the page, and values that are compared.
#[test]
fn h31_what_a_server_compares() {
    let check = |headers: &[(&str, &str)], arguments: &str| {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            let name: HeaderName = name.parse().unwrap();
            all.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let tool = raw(&format!(r#"{{"name":"t","inputSchema":{THREE}}}"#));
        check_call(&all, &tool, Some(&raw(arguments))).map_err(|error| error.code)
    };
    assert_eq!(check(&[], "{}"), Ok(()));
    assert_eq!(check(&[], r#"{"count":null}"#), Ok(()));
    assert_eq!(check(&[("mcp-param-other", "x")], "{}"), Ok(()));
    assert_eq!(check(&[("MCP-Param-Count", "42.0")], r#"{"count":42}"#), Ok(()));
    assert_eq!(check(&[("mcp-param-count", "=?base64?NDI=?=")], r#"{"count":42}"#), Ok(()));
    assert_eq!(check(&[("mcp-param-dry-run", "true")], r#"{"dry":true}"#), Ok(()));
    assert_eq!(check(&[("mcp-param-zone", "")], r#"{"where":{"zone":""}}"#), Ok(()));
    assert_eq!(
        check(
            &[("mcp-param-zone", "=?base64?SGVsbG8sIOS4lueVjA==?=")],
            r#"{"where":{"zone":"Hello, 世界"}}"#
        ),
        Ok(())
    );
    // Its own schema says what is wrong with such an argument; the header repeats it.
    assert_eq!(check(&[("mcp-param-count", "x")], r#"{"count":"x"}"#), Ok(()));
    let refused: [(&[(&str, &str)], &str); 9] = [
        (&[], r#"{"count":42}"#),
        (&[("mcp-param-count", "42")], "{}"),
        (&[("mcp-param-count", "42")], r#"{"count":null}"#),
        (&[("mcp-param-count", "43")], r#"{"count":42}"#),
        (&[("mcp-param-dry-run", "TRUE")], r#"{"dry":true}"#),
        (&[("mcp-param-zone", "=?base64?SGVs!!!bG8=?=")], r#"{"where":{"zone":"Hello"}}"#),
        (&[("mcp-param-zone", "=?base64?SGVsbG8?=")], r#"{"where":{"zone":"Hello"}}"#),
        (&[("mcp-param-zone", "caf\u{e9}")], r#"{"where":{"zone":"café"}}"#),
        (&[("mcp-param-zone", "a"), ("mcp-param-zone", "a")], r#"{"where":{"zone":"a"}}"#),
    ];
    for (headers, arguments) in refused {
        assert_eq!(check(headers, arguments), Err(-32020), "{headers:?} {arguments}");
    }
}

/// What we send, we accept: whatever text and number an argument is.
#[test]
fn what_is_mirrored_passes_the_check() {
    let marks = marks(THREE).unwrap();
    for zone in
        ["a", "", " ", "\t", "=?base64?", "=?base64?=", "=?base64?YQ==?=", "é\u{10ffff}\r\n\0"]
    {
        for count in ["0", "-0", "1E2", "4.20e1", "-9007199254740991"] {
            let zone = RawJson::write(zone);
            let arguments =
                raw(&format!(r#"{{"count":{count},"where":{{"zone":{}}}}}"#, zone.as_str()));
            let headers = marks.mirror(Some(&arguments)).unwrap();
            assert_eq!(marks.check(&headers, Some(&arguments)), Ok(()), "{arguments:?}");
        }
    }
}
