//! A run: the script is started, told what comes of its calls, and brought to its end.

use std::time::Duration;

use rquickjs::{Ctx, Function, Object, Persistent, Promise, Value};

use serde::Deserialize;

use super::compile::{self, FILE};
use super::cpu::Cpu;
use super::engine::{Engine, evaluate};
use super::failure::{self, Told};
use super::pipe::Out;
use crate::protocol::jsonrpc::RawJson;
use crate::script::wire::{Answer, Failure, FromSandbox, Limits, Log, Outcome, Run, ToSandbox};

/// So many errors of promises that nobody awaited are told.
const SHOWN: usize = 5;

/// Errors that nobody awaited.
#[derive(Default, Deserialize)]
struct Leftovers {
    count: usize,
    first: Vec<Option<Told>>,
}

/// A run, while it lives.
struct Live<'a> {
    engine: &'a Engine,
    limits: Limits,
    cpu: Cpu,
}

/// Why it lives no longer.
enum Stop {
    /// It failed.
    Failed(Failure),
    /// Nobody is there who would want to know.
    Gone,
}

/// Runs a script to its end, and says it.
pub(super) fn run(engine: &Engine, run: &Run, out: &Out, cpu: Cpu) {
    let longest = run.limits.source;
    let compiled = if run.source.len() > longest {
        Err(failure::source(run.source.len(), longest))
    } else {
        compile::compile(&run.source)
    };
    let ended = compiled.map_err(Stop::Failed).and_then(|compiled| {
        engine.limit(&run.limits, cpu);
        engine.bridge.set_positions(compiled.positions);
        let live = Live { engine, limits: run.limits, cpu };
        live.run(&compiled.code, run.input.as_ref())
    });
    let frame = match ended {
        Ok(value) => FromSandbox::Done { value },
        Err(Stop::Failed(failure)) => FromSandbox::Failed(failure),
        Err(Stop::Gone) => return,
    };
    let dropped = engine.bridge.dropped_lines();
    if dropped > 0 {
        let text = failure::dropped(dropped, &run.limits);
        engine.bridge.say(&FromSandbox::Log(Log { level: "warn".to_owned(), text }));
    }
    // Where it cannot be said, nobody is there.
    let _ = out.end(&frame);
}

impl Live<'_> {
    fn run(&self, code: &str, input: Option<&RawJson>) -> Result<Option<RawJson>, Stop> {
        let bridge = &self.engine.bridge;
        let promise = self.start(code, input)?;
        // Calls that were not answered when the script's function ended.
        let mut unawaited = None;
        loop {
            let failed = self.engine.work();
            let settled = self.inside(|ctx, _| Ok(ended(ctx, &promise)?.is_some()))?;
            if bridge.is_over() {
                return Err(Stop::Failed(self.explain(failed)));
            }
            if settled {
                unawaited.get_or_insert(bridge.open());
            }
            let timer = bridge.next_timer();
            if bridge.open() == 0 {
                // Calls that nobody awaits are made all the same; timers end with the script.
                if settled {
                    let value = self.value(&promise)?;
                    if let (None, Some(calls @ 1..)) = (&value, unawaited) {
                        bridge.log("warn".to_owned(), failure::unawaited(calls));
                    }
                    return Ok(value);
                }
                if timer.is_none() {
                    return Err(Stop::Failed(match failed {
                        Some(_) => failure::memory(&self.limits),
                        None => failure::never(),
                    }));
                }
            }
            bridge.flush();
            if bridge.must_stop() {
                return Err(Stop::Gone);
            }
            self.wait(timer)?;
        }
    }

    /// Calls the script's function: the promise of its value.
    fn start(
        &self,
        code: &str,
        input: Option<&RawJson>,
    ) -> Result<Persistent<Promise<'static>>, Stop> {
        self.inside(|ctx, prelude| {
            let limits = Object::new(ctx.clone())?;
            limits.set("calls", number(self.limits.calls))?;
            limits.set("concurrent", number(self.limits.concurrent.max(1)))?;
            let input = input.map(|input| parsed(ctx, prelude, input)).transpose()?;
            prelude.get::<_, Function<'_>>("begin")?.call::<_, ()>((limits, input.clone()))?;
            let script: Function<'_> = evaluate(ctx, code, FILE)?;
            let main: Function<'_> = prelude.get("main")?;
            let promise: Promise<'_> = main.call((script, input))?;
            Ok(Persistent::save(ctx, promise))
        })
    }

    /// Waits for an answer or a timer, and tells the script.
    fn wait(&self, timer: Option<Duration>) -> Result<(), Stop> {
        let bridge = &self.engine.bridge;
        if !bridge.wait(timer) {
            return Err(Stop::Gone);
        }
        while let Some(heard) = bridge.heard() {
            // What is no answer would be waited for until the deadline: better an end at once.
            let Ok(ToSandbox::Answer(answer)) = heard else {
                return Err(Stop::Gone);
            };
            self.answered(&answer)?;
        }
        while let Some(number) = bridge.due_timer() {
            self.inside(|_, prelude| {
                prelude.get::<_, Function<'_>>("fire")?.call::<_, ()>((number,))
            })?;
        }
        Ok(())
    }

    fn answered(&self, answer: &Answer) -> Result<(), Stop> {
        self.engine.bridge.answered();
        self.inside(|ctx, prelude| {
            let settle: Function<'_> = prelude.get("settle")?;
            match &answer.outcome {
                Outcome::Value(value) => match parsed(ctx, prelude, value) {
                    Ok(value) => settle.call((answer.call, "value", value)),
                    Err(_) => settle.call((answer.call, "unread", ctx.catch())),
                },
                Outcome::Thrown(thrown) => {
                    let thrown = parsed(ctx, prelude, &RawJson::write(thrown))?;
                    settle.call((answer.call, "thrown", thrown))
                }
            }
        })
    }

    /// The script's value, as JSON.
    fn value(&self, promise: &Persistent<Promise<'static>>) -> Result<Option<RawJson>, Stop> {
        let (text, leftovers) = self.inside(|ctx, prelude| {
            let value = ended(ctx, promise)?;
            let function = |name| prelude.get::<_, Function<'_>>(name);
            let text: Option<String> = function("result")?.call((value,))?;
            Ok((text, function("leftovers")?.call::<_, String>((SHOWN,))?))
        })?;
        self.unawaited(&leftovers, text.is_some())?;
        match text {
            Some(text) if text.len() > self.limits.output => {
                Err(Stop::Failed(failure::output(text.len(), &self.limits)))
            }
            text => Ok(text.map(RawJson::trusted)),
        }
    }

    /// Errors of promises that nobody awaited. They fail a script that gave no value; beside a value
    /// they are lines of its log.
    fn unawaited(&self, leftovers: &str, has_value: bool) -> Result<(), Stop> {
        let Leftovers { count, first } = serde_json::from_str(leftovers).unwrap_or_default();
        for told in first {
            let failure = self.failure(told);
            if !has_value {
                return Err(Stop::Failed(failure));
            }
            let text = format!("in a promise that nobody awaited: {failure}");
            self.engine.bridge.log("error".to_owned(), text);
        }
        if count > SHOWN {
            let text = format!("and {} more such errors", count - SHOWN);
            self.engine.bridge.log("error".to_owned(), text);
        }
        Ok(())
    }

    /// Does something in the engine; what is thrown ends the run.
    fn inside<R>(
        &self,
        work: impl for<'js> FnOnce(&Ctx<'js>, &Object<'js>) -> rquickjs::Result<R>,
    ) -> Result<R, Stop> {
        let prelude = self.engine.prelude.clone();
        let done = self.engine.context.with(|ctx| {
            let done = prelude.restore(&ctx).and_then(|prelude| work(&ctx, &prelude));
            done.map_err(|error| error.is_exception().then(|| Persistent::save(&ctx, ctx.catch())))
        });
        done.map_err(|thrown| Stop::Failed(self.explain(thrown)))
    }

    /// What was thrown, in words. Also of a script whose time is over: the error by which the engine ends it
    /// tells where it was, and the engine gives the little time that it takes to say so.
    fn explain(&self, thrown: Option<Persistent<Value<'static>>>) -> Failure {
        self.engine.open_reserve(&self.limits);
        let prelude = self.engine.prelude.clone();
        let told: Option<String> = thrown.and_then(|thrown| {
            self.engine.context.with(|ctx| {
                let thrown = thrown.restore(&ctx).ok()?;
                let describe: Function<'_> = prelude.restore(&ctx).ok()?.get("describe").ok()?;
                describe.call((thrown,)).ok()
            })
        });
        let told = told.and_then(|told| serde_json::from_str::<Option<Told>>(&told).ok());
        if self.engine.bridge.is_over() {
            let place = told.flatten().and_then(|told| told.place(self.engine.bridge.positions()));
            return failure::cpu(self.cpu.limit(), place);
        }
        told.map_or_else(failure::broken, |told| self.failure(told))
    }

    fn failure(&self, told: Option<Told>) -> Failure {
        match told {
            Some(told) => failure::uncaught(told, self.engine.bridge.positions(), &self.limits),
            None => failure::null(&self.limits),
        }
    }
}

/// What the script came to, once it has: its value, or what it threw as an exception.
fn ended<'js>(
    ctx: &Ctx<'js>,
    promise: &Persistent<Promise<'static>>,
) -> rquickjs::Result<Option<Value<'js>>> {
    let Some(made) = promise.clone().restore(ctx)?.result::<Object<'_>>().transpose()? else {
        return Ok(None);
    };
    let value = made.get("value")?;
    if made.get("well")? { Ok(Some(value)) } else { Err(ctx.throw(value)) }
}

/// A JSON value in the engine, with whole numbers of any length.
fn parsed<'js>(
    ctx: &Ctx<'js>,
    prelude: &Object<'js>,
    json: &RawJson,
) -> rquickjs::Result<Value<'js>> {
    if has_long_number(json.as_bytes()) {
        prelude.get::<_, Function<'_>>("fromLongJson")?.call((json.as_str(),))
    } else {
        ctx.json_parse(json.as_bytes())
    }
}

/// Whether there may be a number that a double cannot hold: so many digits in a row, wherever.
fn has_long_number(json: &[u8]) -> bool {
    has_many_digits(json) || memchr::memchr2_iter(b'e', b'E', json).any(|at| is_far(json, at))
}

/// 2^53 has as many.
const DIGITS: usize = 16;

/// Whether the number with its exponent here may be beyond 2^53, or nearer to 0 than a double can be.
fn is_far(json: &[u8], at: usize) -> bool {
    /// The smallest doubles have as many digits before their first one; with all of their digits kept, fewer.
    const SMALLEST: usize = 290;
    let is_part = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
    let before = json.get(..at).unwrap_or_default().iter().rev().take(DIGITS);
    let mantissa = before.take_while(is_part).count();
    let after = json.get(at + 1..).unwrap_or_default();
    let (sign, digits) = match after.split_first() {
        Some((sign @ (b'-' | b'+'), digits)) => (*sign, digits),
        _ => (b'+', after),
    };
    if mantissa == 0 || !digits.first().is_some_and(u8::is_ascii_digit) {
        return false;
    }
    let exponent = digits.iter().take_while(|digit| digit.is_ascii_digit());
    let exponent = exponent.fold(0_usize, |sum, digit| {
        sum.saturating_mul(10).saturating_add(usize::from(digit - b'0'))
    });
    if sign == b'-' { exponent >= SMALLEST } else { mantissa + exponent >= DIGITS }
}

fn has_many_digits(json: &[u8]) -> bool {
    let mut at = DIGITS - 1;
    while let Some(byte) = json.get(at) {
        if !byte.is_ascii_digit() {
            at += DIGITS;
            continue;
        }
        let start = at + 1 - DIGITS;
        let run = json.get(start..at).unwrap_or_default();
        match run.iter().rposition(|byte| !byte.is_ascii_digit()) {
            None => return true,
            Some(other) => at = start + other + DIGITS,
        }
    }
    false
}

/// A limit for JavaScript.
fn number(limit: usize) -> f64 {
    u32::try_from(limit).map_or(f64::from(u32::MAX), f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_are_seen_wherever_they_stand() {
        for long in ["1234567890123456", "[1,-9007199254740993]", "{\"a\":12345678901234567890}"] {
            assert!(has_long_number(long.as_bytes()), "{long}");
        }
        for long in ["1e400", "[1.5E+14]", "9.007199254740993e15", "-1e-400", "90071992547409.93e2"]
        {
            assert!(has_long_number(long.as_bytes()), "{long}");
        }
        let short = [
            "",
            "1",
            "123456789012345",
            "[123456789012345,123456789012345.5]",
            "{\"a\":\"b\"}",
            "[1.5e3,2E-7,1.25e-05,\"e99\",\"1ee\",\"1e\"]",
        ];
        for short in short {
            assert!(!has_long_number(short.as_bytes()), "{short}");
        }
        for before in 0..40 {
            let text = format!("{}1234567890123456{}", "x".repeat(before), "y".repeat(40 - before));
            assert!(has_long_number(text.as_bytes()), "{text}");
        }
    }
}
