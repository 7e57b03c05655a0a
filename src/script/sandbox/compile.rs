//! TypeScript to the JavaScript that the engine runs, and the way back for positions.
//!
//! The script becomes the body of an async function: `await` and `return` work at its top level. What
//! it gives is what it returns, else its `export default`, else the value of its last statement where
//! that is an expression.

use std::path::Path;
use std::thread;

use oxc_allocator::{Allocator, Box, TakeIn as _, Vec as List};
use oxc_ast::ast::{
    ClassType, ExportDefaultDeclarationKind as Default, Expression, FunctionType, NumberBase,
    Program, Statement, UnaryOperator,
};
use oxc_ast::builder::AstBuilder;
use oxc_ast_visit::{VisitMut, walk_mut};
use oxc_codegen::{Codegen, CodegenOptions, CommentOptions};
use oxc_diagnostics::Diagnostics;
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::SemanticBuilder;
use oxc_span::{GetSpan as _, SourceType, Span};
use oxc_transformer::{TransformOptions, Transformer};

use super::trace::{Place, Positions};
use crate::script::wire::Failure;
use crate::script::without_fence;

/// The name of the script in the engine's traces.
pub(super) const FILE: &str = "script";

/// Around the script, which so begins on the engine's second line.
const BEFORE: &str = "(async function () {\n";
const AFTER: &str = "\n})";

/// The parser goes as deep as a script is nested, and a script of nothing but brackets is as deep as it
/// is long: the stack it may need, in bytes for each byte of the script.
const STACK_PER_BYTE: usize = if cfg!(debug_assertions) { 8 * 1024 } else { 4 * 1024 };

/// The stack that any script needs, in bytes.
const STACK: usize = 1024 * 1024;

/// A script that the engine can run.
#[derive(Debug)]
pub(super) struct Compiled {
    /// An expression whose value is the function to call.
    pub(super) code: String,
    /// From where in the script it comes.
    pub(super) positions: Positions,
}

/// Takes the types out of `source`, which may stand in a fence of Markdown.
pub(super) fn compile(source: &str) -> Result<Compiled, Failure> {
    let source = &*without_fence(source);
    let stack = STACK + source.len() * STACK_PER_BYTE;
    let compiler = thread::Builder::new().name("compiler".to_owned()).stack_size(stack);
    thread::scope(|scope| {
        let done = compiler.spawn_scoped(scope, || compiled(source));
        let done = done.map_err(|_| "the system has no memory for reading a script of this length");
        done.and_then(|done| done.join().map_err(|_| "the script could not be read"))
            .unwrap_or_else(|trouble| Err(mistake(trouble.to_owned(), None)))
    })
}

fn compiled(source: &str) -> Result<Compiled, Failure> {
    let allocator = Allocator::default();
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    // A module, because of what may stand at its top: `await`, `for await`, `await using`.
    let kind = SourceType::ts().with_module(true);
    let parsed = Parser::new(&allocator, source, kind).with_options(options).parse();
    refuse(source, &parsed.diagnostics)?;
    let mut program = parsed.program;
    program.hashbang = None;
    let semantic =
        SemanticBuilder::new().with_check_syntax_error(true).with_enum_eval(true).build(&program);
    refuse(source, &semantic.diagnostics)?;
    let scoping = semantic.semantic.into_scoping();
    let transformed = Transformer::new(&allocator, Path::new(FILE), &TransformOptions::default())
        .build_with_scoping(scoping, &mut program);
    refuse(source, &transformed.diagnostics)?;
    give_value(source, &allocator, &mut program)?;
    Marks { allocator: &allocator }.visit_program(&mut program);
    let options = CodegenOptions {
        comments: CommentOptions::disabled(),
        source_map_path: Some(FILE.into()),
        ..CodegenOptions::default()
    };
    let generated = Codegen::new().with_options(options).build(&program);
    let tokens = generated.map.iter().flat_map(|map| map.get_tokens().collect::<Vec<_>>());
    let places = tokens.map(|token| {
        let code = (token.get_dst_line() + 2, token.get_dst_col() + 1);
        (code, (token.get_src_line() + 1, token.get_src_col() + 1))
    });
    let positions = places.collect();
    Ok(Compiled { code: [BEFORE, &generated.code, AFTER].concat(), positions })
}

/// Fails with the first mistake, where there is one.
fn refuse(source: &str, found: &Diagnostics) -> Result<(), Failure> {
    let Some(first) = found.errors().next() else {
        return Ok(());
    };
    let place = first.labels.first().map(|label| line_column(source, label.offset() as usize));
    let help = first.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
    Err(mistake(format!("{}{help}", first.message), place))
}

/// Makes a module the body of a function which gives the module's value.
fn give_value<'a>(
    source: &str,
    allocator: &'a Allocator,
    program: &mut Program<'a>,
) -> Result<(), Failure> {
    let builder = AstBuilder::new(allocator);
    let mut body = List::new_in(&allocator);
    let mut default = None;
    for statement in program.body.take_in(&allocator) {
        let span = statement.span();
        let foreign = |what: &str| {
            let text = format!(
                "a script cannot {what}: everything it can use is in `tools`, `mcpx`, `artifacts` and `input`"
            );
            Err(mistake(text, Some(line_column(source, span.start as usize))))
        };
        match statement {
            Statement::ImportDeclaration(_) => return foreign("import"),
            Statement::ExportAllDeclaration(_) | Statement::ExportFromDeclaration(_) => {
                return foreign("export from elsewhere");
            }
            Statement::ExportNamedDeclaration(_) => {}
            Statement::ExportDeclaration(export) => {
                body.push(Statement::from(export.unbox().declaration));
            }
            Statement::ExportDefaultDeclaration(export) => {
                default = exported(export.unbox().declaration, &mut body, &builder).or(default);
            }
            other => body.push(other),
        }
    }
    let value = default.or_else(|| last_value(&mut body)).or_else(|| {
        // A script of one string only is read as a directive.
        let only = program.directives.pop().filter(|_| body.is_empty())?;
        Some(Expression::StringLiteral(Box::new_in(only.expression, &allocator)))
    });
    if let Some(value) = value {
        let span = value.span();
        body.push(Statement::new_return_statement(span, Some(value), &builder));
    }
    program.body = body;
    Ok(())
}

/// The value of `export default`. What it declares with a name is declared as well.
fn exported<'a>(
    declaration: Default<'a>,
    body: &mut List<'a, Statement<'a>>,
    builder: &AstBuilder<'a>,
) -> Option<Expression<'a>> {
    match declaration {
        Default::FunctionDeclaration(mut function) => {
            let Some(id) = &function.id else {
                function.r#type = FunctionType::FunctionExpression;
                return Some(Expression::FunctionExpression(function));
            };
            let name = Expression::new_identifier(id.span, id.name, builder);
            body.push(Statement::FunctionDeclaration(function));
            Some(name)
        }
        Default::ClassDeclaration(mut class) => {
            let Some(id) = &class.id else {
                class.r#type = ClassType::ClassExpression;
                return Some(Expression::ClassExpression(class));
            };
            let name = Expression::new_identifier(id.span, id.name, builder);
            body.push(Statement::ClassDeclaration(class));
            Some(name)
        }
        Default::TSInterfaceDeclaration(_) => None,
        other => Expression::try_from(other).ok(),
    }
}

/// The value of the last statement, which is taken out, where that is an expression.
fn last_value<'a>(body: &mut List<'a, Statement<'a>>) -> Option<Expression<'a>> {
    match body.pop()? {
        Statement::ExpressionStatement(last) => Some(last.unbox().expression),
        other => {
            body.push(other);
            None
        }
    }
}

/// Puts marks before statements for which the engine notes no place: without one it takes what fails there
/// (`const { a } = null`, a loop without end) for a part of whatever it noted last.
struct Marks<'a> {
    allocator: &'a Allocator,
}

impl<'a> VisitMut<'a> for Marks<'a> {
    fn visit_statements(&mut self, statements: &mut List<'a, Statement<'a>>) {
        walk_mut::walk_statements(self, statements);
        if statements.iter().all(|statement| mark(statement).is_none()) {
            return;
        }
        let mut marked = List::with_capacity_in(statements.len() * 2, &self.allocator);
        for statement in statements.take_in(&self.allocator) {
            marked.extend(mark(&statement).map(|mark| self.marked(mark, statement.span())));
            marked.push(statement);
        }
        *statements = marked;
    }
}

impl<'a> Marks<'a> {
    fn marked(&self, mark: Mark, span: Span) -> Statement<'a> {
        let builder = AstBuilder::new(self.allocator);
        let mut value =
            Expression::new_numeric_literal(span, 0.0, None, NumberBase::Decimal, &builder);
        if mark == Mark::Kept {
            value =
                Expression::new_unary_expression(span, UnaryOperator::UnaryPlus, value, &builder);
        }
        Statement::new_expression_statement(span, value, &builder)
    }
}

/// What stands before a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// A number alone, of which nothing remains but the place.
    Place,
    /// Something to do, however little: where a loop goes back to its beginning, the engine says that it is at
    /// what was done before.
    Kept,
}

fn mark(statement: &Statement<'_>) -> Option<Mark> {
    match statement {
        Statement::LabeledStatement(it) => mark(&it.body),
        Statement::ReturnStatement(it) => it.argument.as_ref().map(|_| Mark::Place),
        Statement::VariableDeclaration(_)
        | Statement::ClassDeclaration(_)
        | Statement::IfStatement(_)
        | Statement::SwitchStatement(_) => Some(Mark::Place),
        Statement::DoWhileStatement(_)
        | Statement::ForInStatement(_)
        | Statement::ForOfStatement(_)
        | Statement::ForStatement(_)
        | Statement::WhileStatement(_) => Some(Mark::Kept),
        _ => None,
    }
}

/// A mistake in the text of the script.
fn mistake(message: String, place: Option<Place>) -> Failure {
    Failure {
        name: "SyntaxError".to_owned(),
        message,
        line: place.map(|place| place.0),
        column: place.map(|place| place.1),
        limit: None,
        content: None,
    }
}

/// Line and column of a byte of `source`.
fn line_column(source: &str, offset: usize) -> Place {
    let before = source.get(..offset).unwrap_or(source);
    let line = before.bytes().filter(|byte| *byte == b'\n').count();
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let column = before.get(start..).unwrap_or_default().encode_utf16().count();
    let number = |count: usize| u32::try_from(count + 1).unwrap_or(u32::MAX);
    (number(line), number(column))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(source: &str) -> String {
        let compiled = compile(source).unwrap();
        let inner = compiled.code.strip_prefix(BEFORE).unwrap().strip_suffix(AFTER).unwrap();
        inner.replace("0;\n", "").trim().to_owned()
    }

    #[test]
    fn the_last_expression_is_returned() {
        assert_eq!(code("1;\n2"), "1;\nreturn 2;");
        assert_eq!(code("const x: number = 1"), "const x = 1;");
        assert_eq!(code("'a'"), "return \"a\";");
        assert_eq!(code("return 1; 2"), "return 1;\nreturn 2;");
        assert_eq!(code("type A = 1"), "");
        assert_eq!(code("export {};\nf() as any"), "return f();");
    }

    #[test]
    fn modules_become_functions() {
        assert_eq!(code("export const a = 1"), "const a = 1;");
        assert_eq!(code("export default f;\ng()"), "g();\nreturn f;");
        assert_eq!(code("export default async () => 1"), "return async () => 1;");
        assert_eq!(code("export default function f() {}"), "function f() {}\nreturn f;");
        assert_eq!(code("export default class {}"), "return class {};");
        assert_eq!(code("export default function () {}"), "return function() {};");
        for foreign in ["import 'a'", "export * from 'a'", "export { a } from 'a'"] {
            assert!(compile(foreign).unwrap_err().message.contains("`tools`"), "{foreign}");
        }
        assert_eq!(code("import type { A } from 'a'; let a: A"), "let a;");
    }

    #[test]
    fn mistakes_have_places() {
        let failure = compile("let a = 1;\nlet b: = 2").unwrap_err();
        assert_eq!((failure.name.as_str(), failure.line), ("SyntaxError", Some(2)));
        assert_eq!(line_column("ab\ncd", 4), (2, 2));
        assert_eq!(line_column("'𝒳'x", "'𝒳'".len()), (1, 5));
        assert_eq!(line_column("", 0), (1, 1));
        assert_eq!(line_column("a", 9), (1, 2));
    }
}
