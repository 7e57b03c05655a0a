//! What the prelude may ask of this program. None of it is given to scripts.

use std::borrow::Cow;
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rquickjs::promise::PromiseState;
use rquickjs::{Ctx, Function, Object, TypedArray, Value};

use super::bridge::Bridge;

/// The functions, by name.
pub(super) fn functions<'js>(ctx: &Ctx<'js>, bridge: &Rc<Bridge>) -> rquickjs::Result<Object<'js>> {
    let host = Object::new(ctx.clone())?;
    talking(ctx, bridge, &host)?;
    timing(ctx, bridge, &host)?;
    looking(ctx, bridge, &host)?;
    encoding(ctx, &host)?;
    Ok(host)
}

fn talking<'js>(ctx: &Ctx<'js>, bridge: &Rc<Bridge>, host: &Object<'js>) -> rquickjs::Result<()> {
    let own = Rc::clone(bridge);
    let call = move |number: u32, kind: String, a: String, b: String, arguments: String| {
        own.call(number, &kind, a, b, arguments);
    };
    host.set("call", Function::new(ctx.clone(), call)?)?;
    let own = Rc::clone(bridge);
    let log = move |level: String, text: String| own.log(level, text);
    host.set("log", Function::new(ctx.clone(), log)?)?;
    let own = Rc::clone(bridge);
    let offered = move || own.offered();
    host.set("offered", Function::new(ctx.clone(), offered)?)?;
    let own = Rc::clone(bridge);
    let room = move || u32::try_from(own.log_left()).unwrap_or(u32::MAX);
    host.set("room", Function::new(ctx.clone(), room)?)?;
    let own = Rc::clone(bridge);
    let drop = move || own.drop_line();
    host.set("drop", Function::new(ctx.clone(), drop)?)
}

fn timing<'js>(ctx: &Ctx<'js>, bridge: &Rc<Bridge>, host: &Object<'js>) -> rquickjs::Result<()> {
    let own = Rc::clone(bridge);
    let timer = move |number: u32, milliseconds: f64| own.set_timer(number, milliseconds);
    host.set("timer", Function::new(ctx.clone(), timer)?)?;
    let own = Rc::clone(bridge);
    let untimer = move |number: u32| own.clear_timer(number);
    host.set("untimer", Function::new(ctx.clone(), untimer)?)
}

fn looking<'js>(ctx: &Ctx<'js>, bridge: &Rc<Bridge>, host: &Object<'js>) -> rquickjs::Result<()> {
    let own = Rc::clone(bridge);
    let trace = move |trace: String| own.positions().trace(&trace);
    host.set("trace", Function::new(ctx.clone(), trace)?)?;
    let own = Rc::clone(bridge);
    let place = move |trace: String| {
        let place = own.positions().place(&trace);
        place.map_or_else(String::new, |(line, column)| format!("line {line}, column {column}"))
    };
    host.set("place", Function::new(ctx.clone(), place)?)?;
    let promise = |value: Value<'_>| match value.as_promise().map(rquickjs::Promise::state) {
        Some(PromiseState::Pending) => "pending",
        Some(PromiseState::Resolved) => "fulfilled",
        Some(PromiseState::Rejected) => "rejected",
        None => "",
    };
    host.set("promise", Function::new(ctx.clone(), promise)?)
}

fn encoding<'js>(ctx: &Ctx<'js>, host: &Object<'js>) -> rquickjs::Result<()> {
    let encode = |ctx: Ctx<'js>, text: String| TypedArray::<u8>::new_copy(ctx, text.as_bytes());
    host.set("encode", Function::new(ctx.clone(), encode)?)?;
    let decode = |base64: String, fatal: bool, keep_mark: bool| {
        let bytes = STANDARD.decode(base64).unwrap_or_default();
        let unmarked = bytes.strip_prefix(b"\xEF\xBB\xBF").filter(|_| !keep_mark);
        let text = String::from_utf8_lossy(unmarked.unwrap_or(&bytes));
        // Only text with replacements is not borrowed.
        let exact = matches!(text, Cow::Borrowed(_));
        (exact || !fatal).then(|| text.into_owned())
    };
    host.set("decode", Function::new(ctx.clone(), decode)?)
}
