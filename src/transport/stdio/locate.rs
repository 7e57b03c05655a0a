//! Finding the program, on the child's own PATH, and telling why it will not start (F28, F34).

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::child::SpawnError;

/// Where programs are looked for if the environment has no PATH, as execvp(3) does.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The file that `program` means for a child with this environment and working directory.
pub fn locate(
    program: &OsStr,
    env: &[(OsString, OsString)],
    cwd: &Path,
) -> Result<PathBuf, SpawnError> {
    if !cwd.is_dir() {
        return Err(SpawnError::NoDirectory(cwd.to_owned()));
    }
    if program.as_bytes().contains(&b'/') {
        let file = cwd.join(program);
        return check(&file, program).and_then(|there| {
            if there { Ok(file) } else { Err(SpawnError::NoFile { program: text(program) }) }
        });
    }
    let path =
        env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
    let mut refused = None;
    for folder in std::env::split_paths(path) {
        let file = cwd.join(folder).join(program);
        match check(&file, program) {
            Ok(true) => return Ok(file),
            Ok(false) => {}
            // As execvp(3): a later folder may have one that can be executed.
            Err(error) => refused = Some(error),
        }
    }
    Err(refused
        .unwrap_or_else(|| SpawnError::NotFound { program: text(program), path: text(path) }))
}

/// Whether the file is there; an error if it is but cannot be executed for a reason we can name.
fn check(file: &Path, program: &OsStr) -> Result<bool, SpawnError> {
    let refuse = |kind: std::io::ErrorKind, why: &'static str| {
        Err(SpawnError::NotExecutable {
            program: text(program),
            source: std::io::Error::new(kind, why),
        })
    };
    let Ok(meta) = std::fs::metadata(file) else { return Ok(false) };
    if meta.is_dir() {
        return refuse(std::io::ErrorKind::IsADirectory, "it is a folder");
    }
    if meta.permissions().mode() & 0o111 == 0 {
        return refuse(
            std::io::ErrorKind::PermissionDenied,
            "the file is not marked as executable (chmod +x)",
        );
    }
    if let Some(interpreter) = shebang(file).filter(|line| line.ends_with('\r')) {
        // The kernel or `env` would look for a program whose name ends in CR.
        return Err(SpawnError::BadInterpreter {
            program: text(program),
            interpreter: interpreter.trim_end().to_owned(),
            why: "the line ends in CR LF, save the file with LF line ends",
        });
    }
    Ok(true)
}

/// Why a file that is there failed to start with "not found".
pub fn missing_interpreter(file: &Path, program: &OsStr) -> SpawnError {
    let interpreter = shebang(file).map(|line| line.trim().to_owned());
    SpawnError::BadInterpreter {
        program: text(program),
        interpreter: interpreter.unwrap_or_else(|| "its dynamic loader".to_owned()),
        why: "there is no such file",
    }
}

/// The text behind `#!`, without the line's LF.
fn shebang(file: &Path) -> Option<String> {
    // As much of it as the kernel reads (binfmt_script).
    let mut head = [0; 256];
    let length = std::fs::File::open(file).ok()?.read(&mut head).ok()?;
    let line = head.get(..length)?.strip_prefix(b"#!")?;
    let line = line.split(|&byte| byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).into_owned())
}

fn text(os: &OsStr) -> String {
    os.to_string_lossy().into_owned()
}
