//! Whether an answer is as the expectation file says.

use serde_json::Value;

pub type Outcome<T> = Result<T, String>;

/// Why `actual` does not fit `pattern`. Objects may hold more than the pattern; lists not.
pub fn misfit(pattern: &Value, actual: &Value, at: &str) -> Outcome<()> {
    if let Some(part) = pattern.get("$has").and_then(Value::as_str) {
        let found = actual.as_str().is_some_and(|text| text.contains(part));
        return if found {
            Ok(())
        } else {
            Err(format!("{at}: {actual} does not contain {part:?}"))
        };
    }
    match (pattern, actual) {
        (Value::Object(wanted), Value::Object(got)) => wanted.iter().try_for_each(|(key, item)| {
            misfit(item, got.get(key).unwrap_or(&Value::Null), &format!("{at}.{key}"))
        }),
        (Value::Array(wanted), Value::Array(got)) => {
            if wanted.len() != got.len() {
                return Err(format!("{at}: {} items in place of {}", got.len(), wanted.len()));
            }
            let mut pairs = wanted.iter().zip(got).enumerate();
            pairs.try_for_each(|(i, (a, b))| misfit(a, b, &format!("{at}[{i}]")))
        }
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => Ok(()),
        (a, b) if a == b => Ok(()),
        (a, b) => Err(format!("{at}: {b} in place of {a}")),
    }
}

/// A tool's own result must not be an error unless the pattern says so.
pub fn fits(pattern: &Value, result: &Value) -> Outcome<()> {
    if pattern.get("isError").is_none() && result["isError"] == true {
        return Err(format!("isError: {}", text_of(result)));
    }
    misfit(pattern, result, "result")
}

pub fn text_of(result: &Value) -> String {
    let blocks = result["content"].as_array().cloned().unwrap_or_default();
    blocks
        .iter()
        .map(|block| block["text"].as_str().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}

pub fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
