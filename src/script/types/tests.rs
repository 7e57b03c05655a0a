use std::fmt::Write as _;

use oxc_allocator::Allocator;
use oxc_parser::Parser;
use oxc_span::SourceType;

use super::*;
use crate::protocol::jsonrpc::RawJson;

const LIMITS: Limits = Limits { depth: 16, nodes: 4000, size: 32 << 10, description: 4 << 10 };

fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned().into()).unwrap()
}

/// A tool with these members beside its name.
fn tool(name: &str, members: &str) -> RawJson {
    raw(&format!(r#"{{"name":{},{members}}}"#, RawJson::write(name).as_str()))
}

fn declared(tools: &[RawJson], limits: &Limits, room: Option<usize>) -> Declared {
    let names: Vec<String> =
        tools.iter().map(|tool| tool.member_str("name").unwrap_or_default()).collect();
    let members = crate::script::names::members(names.iter().map(String::as_str));
    let tools = members
        .into_iter()
        .zip(tools)
        .map(|((member, _), definition)| Tool { member, definition })
        .collect();
    let namespace = Namespace { member: "s".to_owned(), about: String::new(), tools };
    let declared = declare(&[namespace], limits, room);
    parses(&declared.text);
    declared
}

/// Every text that leaves here is TypeScript.
fn parses(text: &str) {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, text, SourceType::ts()).parse();
    assert!(parsed.diagnostics.is_empty(), "{:?}\n{text}", parsed.diagnostics.first());
}

/// The type of a property with this schema; other lines of the text follow it.
fn of_property(schema: &str) -> String {
    of_property_beside(schema, "")
}

fn of_property_beside(schema: &str, beside: &str) -> String {
    let members = format!(
        r#""inputSchema":{{"type":"object","properties":{{"p":{schema}}},"required":["p"]{beside}}}"#
    );
    let text = declared(&[tool("t", &members)], &LIMITS, None).text;
    let text = text.strip_prefix("interface Tools {\n  s: {\n    t(args: ").unwrap_or(&text);
    let (args, types) = text.split_once("): Promise<any>;\n  };\n}\n").unwrap();
    let args = args.strip_prefix("{ p: ").and_then(|args| args.strip_suffix(" }")).unwrap_or(args);
    let types: Vec<&str> = types.lines().map(str::trim).collect();
    format!("{args} {}", types.join(" ")).trim().to_owned()
}

#[test]
fn the_prelude_is_typescript() {
    parses(PRELUDE);
}

/// C-06: unions, intersections, tuples, enums and constants.
#[test]
fn c06_words_of_types() {
    for (schema, expected) in [
        (r#"{"type":"string"}"#, "string"),
        (r#"{"type":["string","null"]}"#, "string | null"),
        (r#"{"type":"boolean"}"#, "boolean"),
        (r#"{"type":"array"}"#, "unknown[]"),
        (r#"{"type":"array","items":{"type":["number","null"]}}"#, "(number | null)[]"),
        (r#"{"type":"object"}"#, "Record<string, unknown>"),
        (r#"{"type":"object","additionalProperties":false}"#, "{}"),
        (
            r#"{"type":"object","additionalProperties":{"type":"number"}}"#,
            "{ [key: string]: number }",
        ),
        (r#"{"properties":{"a":{},"b-c":{"type":"null"}}}"#, r#"{ a?: unknown; "b-c"?: null }"#),
        (r#"{"required":["x"]}"#, "{ x: unknown }"),
        (r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#, "string | null"),
        (r#"{"oneOf":[{"type":"string"},{"type":"string"}]}"#, "string"),
        (r#"{"anyOf":[{"type":"string"},{}]}"#, "unknown"),
        (
            r#"{"allOf":[{"properties":{"a":{"type":"string"}}},{"required":["a"]}]}"#,
            "{ a: string }",
        ),
        (
            r#"{"type":"object","properties":{"a":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}"#,
            "{ a?: unknown } & ({ a: unknown } | { b: unknown })",
        ),
        (r#"{"enum":["a",1,null,true]}"#, r#""a" | 1 | null | true"#),
        (r#"{"enum":[{"a":[1]},[]]}"#, "{ a: [1] } | []"),
        (r#"{"const":-0.50}"#, "-0.50"),
        (r#"{"const":"\ud800"}"#, r#""\ud800""#),
        (
            r#"{"prefixItems":[{"type":"number"},{"type":"string"}],"minItems":1}"#,
            "[number, string?, ...unknown[]]",
        ),
        (r#"{"items":[{"type":"number"}],"additionalItems":false,"minItems":1}"#, "[number]"),
        (
            r#"{"prefixItems":[{"type":"number"}],"items":{"type":"string"}}"#,
            "[number?, ...string[]]",
        ),
        ("true", "unknown"),
        (r#"{"not":{}}"#, "never"),
        (r#"{"type":"object","additionalProperties":{"not": { }}}"#, "{}"),
        ("false", "never"),
        (r#"{"type":"string","nullable":true}"#, "string | null"),
        (r#"{"type":"widget"}"#, "unknown"),
        (r#"{"type":[{"type":"number"},"null"]}"#, "number | null"),
        ("5", "unknown"),
    ] {
        let found = of_property(schema);
        let found = found.rsplit("*/\n      p: ").next().unwrap().trim_end_matches(";\n    }");
        assert_eq!(found, expected, "{schema}");
    }
}

/// TypeScript refuses a named property that an index signature does not take.
#[test]
fn c06_index_signatures_take_what_is_named() {
    let of = |additional: &str| {
        of_property(&format!(
            r#"{{"properties":{{"a":{{"type":"number"}}}},"additionalProperties":{additional}}}"#
        ))
    };
    assert_eq!(
        of(r#"{"type":"string"}"#),
        "{ a?: number; [key: string]: string | number | undefined }"
    );
    assert_eq!(of("true"), "{ a?: number; [key: string]: unknown }");
    assert_eq!(of("false"), "{ a?: number }");
    let patterns =
        r#"{"patternProperties":{"^x*/":{"type":"string"}},"additionalProperties":false}"#;
    assert!(of_property(patterns).contains("/** Names like `^x*\\/` */"));
}

/// C-07: conditions are alternatives, an empty one takes what the others leave.
#[test]
fn c07_conditions_are_alternatives() {
    let schema = r#"{"type":"object","properties":{"k":{"enum":["a","b"]}},"required":["k"],
        "if":{"properties":{"k":{"const":"a"}}},"then":{"properties":{"x":{"type":"string"}},"required":["x"]}}"#;
    assert_eq!(of_property(schema), r#"{ k: "a" | "b" } & ({ k?: "a"; x: string } | {})"#);
    let schema = r#"{"properties":{"a":{}},"dependentSchemas":{"a":{"required":["b"]}}}"#;
    assert_eq!(of_property(schema), "{ a?: unknown } & ({ a: unknown; b: unknown } | {})");
    assert!(
        of_property(r#"{"type":"string","not":{"const":"x"}}"#).contains(r#"@not {"const":"x"}"#)
    );
}

/// C-06, C-08: references within the schema by pointer, anchor and identifier; everything else is unknown.
#[test]
fn c08_references() {
    let defs = r##","$defs":{"N":{"type":"object","properties":{"v":{"type":"string"},"next":{"$ref":"#/$defs/N"}},
        "required":["v"]},"S":{"type":"string"},"A":{"$anchor":"here","type":"number"},
        "I":{"$id":"https://x.test/item.json","type":"object","properties":{"q":{"type":"boolean"},"r":{"$ref":"#/properties/q"}}},
        "a/b c":{"const":7},"loop":{"$ref":"#/$defs/loop2"},"loop2":{"$ref":"#/$defs/loop"}}"##;
    for (reference, expected) in [
        ("#/$defs/S", "string"),
        ("#/$defs/N", "s_N interface s_N { v: string; next?: s_N }"),
        ("#here", "number"),
        ("https://x.test/item.json#/properties/q", "boolean"),
        ("item.json", "s_item interface s_item { q?: boolean; r?: boolean }"),
        ("#/$defs/a~1b%20c", "7"),
        ("#/$defs/S/type", "unknown /* $ref #/$defs/S/type leads to no schema */"),
        ("#/nowhere", "unknown /* $ref #/nowhere leads nowhere */"),
        ("https://evil.test/s.json", "unknown /* $ref https://evil.test/s.json is not fetched */"),
        ("https://evil.test/*/x", "unknown /* $ref https://evil.test/*\\/x is not fetched */"),
        ("#/$defs/loop", "unknown /* it only refers to itself */"),
    ] {
        let schema = format!(r#"{{"$ref":"{reference}"}}"#);
        assert_eq!(of_property_beside(&schema, defs), expected, "{reference}");
    }
    let deep = r##"{"properties":{"a":{"anyOf":[{"type":"null"},{"properties":{"b":{"const":1}}}]},
        "c":{"$ref":"#/properties/p/properties/a/anyOf/1/properties/b"}}}"##;
    assert!(of_property(deep).contains("c?: 1"));
}

/// C-09: results by the output schema, recursion through the root included.
#[test]
fn c09_results() {
    let output = r##""outputSchema":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}}}}"##;
    let text = declared(&[tool("t", output)], &LIMITS, None).text;
    let expected = "interface Tools {\n  s: {\n    t(args?: Record<string, unknown>): Promise<s_t_result>;\n  };\n}\n\
        interface s_t_result { kids?: s_t_result[] }\n";
    assert_eq!(text, expected);
    let text = declared(&[tool("t", r#""outputSchema":{"type":"string"}"#)], &LIMITS, None).text;
    assert!(text.contains("Promise<string>"), "{text}");
}

/// C-12: what a schema says in words; nothing in it ends the comment.
#[test]
fn c12_comments() {
    let schema =
        r#"{"type":"integer","description":"Page */ of\n  results.","minimum":1,"default":1}"#;
    let found = of_property(schema);
    for line in [" * Page *\\/ of\n", " *   results.\n", " * @integer @minimum 1 @default 1\n"] {
        assert!(found.contains(line), "{found}");
    }
    let quiet = r#"{"type":"string","title":"P","default":null}"#;
    assert_eq!(of_property(quiet), "string");
    let nasty = "a*\u{2028}/ \u{202e}x\u{0}*//*\u{feff}/";
    let described = format!(r#""description":{}"#, RawJson::write(nasty).as_str());
    declared(&[tool("t", &described)], &LIMITS, None);
    declared(&[tool("*/ evil\n", &described)], &LIMITS, None);
}

/// C-13: names that are none, reserved words, collisions.
#[test]
fn c13_names_of_tools() {
    let tools: Vec<RawJson> = ["get-issue", "get_issue", "new", "delete", "", "__proto__", "1"]
        .iter()
        .map(|name| tool(name, r#""title":"T""#))
        .collect();
    let text = declared(&tools, &LIMITS, None).text;
    for line in [
        "/** `get-issue`: T */\n    get_issue_2(",
        "    get_issue(",
        "    \"new\"(",
        "    delete(",
        "    ___proto__(",
        "    _1(",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let of = |body: &str| {
        format!(
            r##""inputSchema":{{"properties":{{"n":{{"$ref":"#/$defs/N"}}}},"$defs":{{"N":{body}}}}}"##
        )
    };
    let one = of(r#"{"properties":{"a":{}}}"#);
    let tools = [tool("a", &one), tool("b", &one), tool("c", &of(r#"{"properties":{"b":{}}}"#))];
    let text = declared(&tools, &LIMITS, None).text;
    assert!(
        text.contains("b(args?: { n?: s_N })") && text.contains("c(args?: { n?: s_N_2 })"),
        "{text}"
    );
    assert_eq!(text.matches("interface s_").count(), 2, "{text}");
}

/// F41: odd input schemas lose no tool.
#[test]
fn f41_odd_schemas() {
    let record = "t(args?: Record<string, unknown>): Promise<any>;";
    for (members, expected) in [
        (r#""title":"""#, record),
        (r#""inputSchema":null"#, record),
        (r#""inputSchema":true"#, record),
        (r#""inputSchema":{}"#, record),
        (r#""inputSchema":{"type":"object"}"#, record),
        (r#""inputSchema":{"type":"string"}"#, "/** Its input schema is not that of an object. */"),
        (r#""inputSchema":"x""#, "/** Its input schema is no schema. */"),
        (r#""inputSchema":{"properties":[],"required":5}"#, record),
        (
            r#""inputSchema":{"properties":{"a":null}},"description":null,"annotations":null"#,
            "t(args?: { a?: unknown })",
        ),
        (r##""inputSchema":{"$ref":"#"}"##, record),
        (
            r##""inputSchema":{"$ref":"#/definitions/A","definitions":{"A":{"properties":{"b":{}},"required":["b"]}}}"##,
            "t(args: s_A)",
        ),
    ] {
        let text = declared(&[tool("t", members)], &LIMITS, None).text;
        assert!(text.contains(expected), "{members}: {text}");
    }
}

/// C-08: what is beyond a limit is `unknown`, and says so.
#[test]
fn c08_limits_cut() {
    let mut deep = r#"{"type":"string"}"#.to_owned();
    for _ in 0..9 {
        deep = format!(r#"{{"properties":{{"a":{deep}}}}}"#);
    }
    let members = format!(r#""inputSchema":{deep}"#);
    let low = Limits { depth: 3, ..LIMITS };
    let text = declared(&[tool("t", &members)], &low, None).text;
    assert!(
        text.contains("{ a?: { a?: { a?: unknown /* deeper than types.depth */ } } }"),
        "{text}"
    );
    let few = Limits { nodes: 3, ..LIMITS };
    let wide = r#""inputSchema":{"properties":{"a":{},"b":{},"c":{},"d":{}}}"#;
    let text = declared(&[tool("t", wide)], &few, None).text;
    assert!(
        text.contains("[key: string]: unknown") && text.contains("2 more properties (types.nodes)"),
        "{text}"
    );
}

/// The whole answer has a bound: what does not fit is named, and one tool is always there.
#[test]
fn declarations_fit_into_the_room() {
    let properties: String = (0..200).fold(String::new(), |mut all, at| {
        let comma = if at > 0 { "," } else { "" };
        let _ =
            write!(all, r#"{comma}"p{at}":{{"type":"string","description":"Some words on it."}}"#);
        all
    });
    let big = format!(r#""inputSchema":{{"properties":{{{properties}}}}}"#);
    let tools = [tool("big", &big), tool("small", r#""title":"""#), tool("big2", &big)];
    let all = declared(&tools, &LIMITS, None);
    assert!(all.left_out.is_empty());
    let some = declared(&tools, &LIMITS, Some(15_000));
    assert_eq!(some.left_out, [("s".to_owned(), "big2".to_owned())]);
    let least = declared(&tools, &LIMITS, Some(300));
    assert!(least.left_out.contains(&("s".to_owned(), "big2".to_owned())));
    assert!(least.text.contains("big(args?:") && least.text.len() < 1000, "{}", least.text);
}

#[test]
fn signatures_are_one_short_line() {
    let limits = Limits { size: 120, ..LIMITS };
    let of = |members: &str| signature(&tool("t", members), &limits);
    assert_eq!(of(r#""title":"x""#), "t(args?: Record<string, unknown>): Promise<any>");
    let schema = r##""inputSchema":{"properties":{"title":{"type":"string","description":"x"},"labels":{"type":"array","items":{"$ref":"#/$defs/L"}}},
        "required":["title"],"$defs":{"L":{"properties":{"name":{"type":"string"}}}}}"##;
    assert_eq!(
        of(schema),
        "t(args: { title: string; labels?: { name?: string }[] }): Promise<any>"
    );
    let many: String = (0..50).fold(String::new(), |mut all, at| {
        let comma = if at > 0 { "," } else { "" };
        let _ = write!(all, r#"{comma}"property{at}":{{"type":"string"}}"#);
        all
    });
    let one = format!(r#""inputSchema":{{"properties":{{{many}}},"required":["property7"]}}"#);
    let shown = "t(args: { property0?: string; property1?: string; property2?: string; property7: string; … }): Promise<any>";
    assert_eq!(of(&one), shown);
    let none = format!(r#""inputSchema":{{"properties":{{{many}}}}}"#);
    assert!(
        of(&none).starts_with("t(args?: { property0?: string; ")
            && of(&none).ends_with("; … }): Promise<any>")
    );
    assert_eq!(
        signature(&tool("t", &none), &Limits { size: 40, ..LIMITS }),
        "t(args?: {…}): Promise<any>"
    );
    let all = format!(
        r#""inputSchema":{{"properties":{{{many}}},"required":[{}]}}"#,
        (0..50).map(|at| format!(r#""property{at}""#)).collect::<Vec<_>>().join(",")
    );
    assert!(of(&all).len() <= 122 && of(&all).ends_with('…'), "{}", of(&all));
}

/// What would not end here takes hours or the stack: exponential references, products of alternatives,
/// megabytes, ten thousand of anything, any depth.
#[test]
fn c08_bombs_end() {
    let doubling: String = (0..60).fold(String::new(), |mut all, at| {
        let _ = write!(
            all,
            r##""D{at}":{{"properties":{{"l":{{"$ref":"#/$defs/D{0}"}},"r":{{"$ref":"#/$defs/D{0}"}}}}}},"##,
            at + 1
        );
        all
    });
    let doubling =
        format!(r##"{{"$ref":"#/$defs/D0","$defs":{{{doubling}"D60":{{"const":1}}}}}}"##);
    let product: Vec<String> = (0..200)
        .map(|at| format!(r#"{{"anyOf":[{{"required":["a{at}"]}},{{"required":["b{at}"]}},{{"required":["c{at}"]}}]}}"#))
        .collect();
    let product = format!(r#"{{"allOf":[{}]}}"#, product.join(","));
    let deep = format!("{}{{}}{}", r#"{"items":"#.repeat(100_000), "}".repeat(100_000));
    let lists = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let pointer = format!(r##"{{"$ref":"#{}","items":{{}}}}"##, "/items".repeat(100_000));
    let wide: Vec<String> =
        (0..10_000).map(|at| format!(r#""p{at}":{{"type":"string"}}"#)).collect();
    let wide = format!(r#"{{"properties":{{{}}}}}"#, wide.join(","));
    let long = format!(
        r#"{{"properties":{{"{0}":{{"const":"{0}","description":"{0}"}}}}}}"#,
        "x".repeat(1 << 20)
    );
    let refs: Vec<String> =
        (0..5000).map(|at| format!(r##""p{at}":{{"$ref":"#/anyOf/{at}"}}"##)).collect();
    let options = vec![r#"{"properties":{"x":{}}}"#; 5000].join(",");
    let refs = format!(r#"{{"properties":{{{}}},"anyOf":[{options}]}}"#, refs.join(","));
    let same: Vec<String> =
        (0..4000).map(|at| format!(r##""p{at}":{{"$ref":"#/$defs/p{at}/x"}}"##)).collect();
    let defs: Vec<String> =
        (0..4000).map(|at| format!(r#""p{at}":{{"x":{{"properties":{{"a":{{}}}}}}}}"#)).collect();
    let same = format!(r#"{{"properties":{{{}}},"$defs":{{{}}}}}"#, same.join(","), defs.join(","));
    let values = format!(r#"{{"enum":[{}]}}"#, vec!["1"; 100_000].join(","));
    for schema in [doubling, product, deep, lists, pointer, wide, long, refs, same, values] {
        let members = format!(r#""inputSchema":{schema},"outputSchema":{schema}"#);
        let tool = tool("t", &members);
        declared(std::slice::from_ref(&tool), &LIMITS, Some(LIMITS.size));
        signature(&tool, &Limits { size: 200, ..LIMITS });
    }
}

/// Seeded: schemas from all words with all kinds of values, in every combination that chance gives.
#[test]
fn c06_random_schemas_become_typescript() {
    let mut chance = Chance(0x5eed);
    for _ in 0..3000 {
        let members =
            format!(r#""inputSchema":{},"outputSchema":{}"#, chance.schema(4), chance.schema(3));
        let tool = tool("t", &members);
        declared(std::slice::from_ref(&tool), &LIMITS, None);
        declared(
            std::slice::from_ref(&tool),
            &Limits { depth: 2, nodes: 9, size: 99, description: 9 },
            Some(99),
        );
        signature(&tool, &Limits { size: 99, ..LIMITS });
    }
}

struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % end
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn schema(&mut self, depth: usize) -> String {
        const WORDS: [&str; 34] = [
            "type",
            "properties",
            "required",
            "additionalProperties",
            "patternProperties",
            "items",
            "prefixItems",
            "additionalItems",
            "minItems",
            "maxItems",
            "enum",
            "const",
            "anyOf",
            "oneOf",
            "allOf",
            "if",
            "then",
            "else",
            "not",
            "$ref",
            "$defs",
            "definitions",
            "$anchor",
            "$id",
            "dependentSchemas",
            "dependencies",
            "nullable",
            "description",
            "default",
            "format",
            "pattern",
            "minimum",
            "$dynamicRef",
            "unevaluatedProperties",
        ];
        if depth == 0 || self.below(12) == 0 {
            return self.value().to_owned();
        }
        let count = self.below(5);
        let members: Vec<String> = (0..count)
            .map(|_| {
                let word = self.pick(&WORDS);
                format!(r#""{word}":{}"#, self.member(word, depth - 1))
            })
            .collect();
        format!("{{{}}}", members.join(","))
    }

    fn value(&mut self) -> &'static str {
        self.pick(&[
            "true",
            "false",
            "null",
            "0",
            "1",
            "-1.5e3",
            r#""x""#,
            r#""*/""#,
            "[]",
            "{}",
            r#"["a","*/"]"#,
            r#""\ud800""#,
            r#"{"type":"string"}"#,
            r#"{"type":"object"}"#,
            r#""\u2028""#,
            r#"{"a":1}"#,
        ])
    }

    fn member(&mut self, word: &str, depth: usize) -> String {
        if self.below(10) == 0 {
            return self.value().to_owned();
        }
        match word {
            "type" => self
                .pick(&[
                    r#""string""#,
                    r#""object""#,
                    r#""array""#,
                    r#""integer""#,
                    r#""null""#,
                    r#"["object","null"]"#,
                    r#"["array","string"]"#,
                    r#""boolean""#,
                ])
                .to_owned(),
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
            | "dependencies" => {
                let names = ["a", "b", "*/", "", "a b", "__proto__", "\\u0061"];
                let members: Vec<String> = (0..self.below(4))
                    .map(|_| format!(r#""{}":{}"#, self.pick(&names), self.schema(depth)))
                    .collect();
                format!("{{{}}}", members.join(","))
            }
            "prefixItems" | "anyOf" | "oneOf" | "allOf" => {
                let schemas: Vec<String> = (0..self.below(4)).map(|_| self.schema(depth)).collect();
                format!("[{}]", schemas.join(","))
            }
            "items" if self.below(3) == 0 => format!("[{}]", self.schema(depth)),
            "$ref" | "$dynamicRef" => self
                .pick(&[
                    r##""#""##,
                    r##""#/$defs/a""##,
                    r##""#/definitions/b""##,
                    r##""#/properties/a""##,
                    r##""#x""##,
                    r#""y""#,
                    r##""#/anyOf/0""##,
                    r#""https://e.test/*/""#,
                ])
                .to_owned(),
            "$anchor" | "$id" => self.pick(&[r#""x""#, r#""y""#]).to_owned(),
            "required" => self.pick(&[r#"["a"]"#, r#"["a","zz","*/"]"#, "[]", "true"]).to_owned(),
            "enum" => {
                self.pick(&[r#"["a",1]"#, r#"[{"a":[1]},null]"#, r#"["*/","\u2028"]"#]).to_owned()
            }
            "minItems" | "maxItems" => self.pick(&["0", "1", "2", "99"]).to_owned(),
            "const" | "default" | "description" | "format" | "pattern" | "minimum" | "nullable" => {
                self.value().to_owned()
            }
            _ => self.schema(depth),
        }
    }
}
