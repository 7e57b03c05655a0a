//! Manual pages: written where they are wanted, accepted by what formats them, and taken away again.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::setup;

fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for section in ["man1", "man5"] {
        let entries = std::fs::read_dir(folder.join(section)).unwrap();
        found.extend(entries.map(|entry| entry.unwrap().path()));
    }
    found.sort();
    found
}

/// What the formatter makes of a page, or says of it; `None` where there is none.
fn formatted(page: &Path) -> Option<(String, String)> {
    let mut command = Command::new("groff");
    command.args(["-man", "-Tutf8", "-ww", "-rLL=90n"]).arg(page);
    let output = match command.output() {
        Ok(output) => output,
        Err(_) => Command::new("mandoc").args(["-Tutf8", "-Wwarning"]).arg(page).output().ok()?,
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Some((text(output.stdout), text(output.stderr)))
}

/// What is printed twice or with escapes for bold, plainly.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{8}' => drop(out.pop()),
            '\u{1b}' => drop(letters.by_ref().find(|letter| *letter == 'm')),
            '\u{2010}' | '\u{2212}' => out.push('-'),
            _ => out.push(letter),
        }
    }
    out
}

#[tokio::test]
async fn manual_pages_are_written_accepted_and_removed() {
    let daemon = setup::prepare();
    let folder = daemon.path("home/pages");
    let name = folder.to_str().unwrap();
    let said = daemon.cli(&["man", name]).await.expect_code(0).stdout;
    let all = pages(&folder);
    assert!(said.contains(&format!("{} pages written to {name}", all.len())), "{said}");
    let has = |name: &str| all.iter().any(|page| page.ends_with(name));
    for wanted in ["mcpx.1", "mcpx-serve.1", "mcpx-settings-set.1", "mcpx-ps.1", "mcpx.toml.5"] {
        assert!(has(wanted), "{wanted} is not in {all:?}");
    }
    assert!(!has("mcpx-demo-server.1"), "what is hidden has no page");
    let mut read = 0;
    for page in &all {
        if std::fs::read(page).unwrap().starts_with(b".so ") {
            continue;
        }
        let Some((text, complaints)) = formatted(page) else {
            println!("left out: neither groff nor mandoc is here");
            return;
        };
        assert_eq!(complaints, "", "{}", page.display());
        let text = plain(&text);
        assert!(text.contains("NAME") && text.contains("DESCRIPTION"), "{}", page.display());
        read += 1;
        if page.ends_with("mcpx.toml.5") {
            for part in ["idle_timeout = \"5m\"", "[call]", "${file:PATH}", "conf.d", "POLICY"] {
                assert!(text.contains(part), "{part} is not in\n{text}");
            }
        }
        if page.ends_with("mcpx.1") {
            for part in ["EXIT STATUS", "MCPX_STATE_DIR", "mcpx-serve(1)", "mcpx.toml(5)"] {
                assert!(text.contains(part), "{part} is not in\n{text}");
            }
        }
    }
    assert!(read > 40, "{read}");
    daemon.cli(&["man", "--remove", name]).await.expect_code(0);
    assert_eq!(pages(&folder), Vec::<PathBuf>::new());
    let said = daemon.cli(&["man", "--remove"]).await.expect_code(0).stdout;
    assert!(said.starts_with("0 pages removed from"), "{said}");
}
