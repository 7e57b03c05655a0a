//! The command tree: built from the table of ops, plus what is no op.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use mcpx::control::ops::{OPS, Op, OpName, Param, ParamKind, Place};

use crate::ended::Outcome;
use crate::hosts::Desk;
use crate::output::Printer;
use crate::setup::{self, Setup};
use crate::{commands, connect, daemon, demo, import, install, man, serve, trust};

/// The whole tree.
pub(crate) fn tree() -> Command {
    let mut root = Command::new("mcpx")
        .about("One supervised daemon in front of all of a person's MCP servers")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_version_flag(false)
        .arg_required_else_help(true)
        .subcommand_required(true)
        .arg(
            Arg::new("config")
                .long("config")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .global(true)
                .help("Read this configuration file in place of the user's"),
        )
        .arg(
            Arg::new("json")
                .long("json")
                .action(ArgAction::SetTrue)
                .global(true)
                .help("Print answers as JSON"),
        );
    for op in OPS {
        root = match op.command {
            Some([name]) => root.subcommand(leaf(op, name)),
            Some([group, name]) => {
                if root.find_subcommand(group).is_none() {
                    root = root.subcommand(group_of(group));
                }
                root.mut_subcommand(*group, |command| command.subcommand(leaf(op, name)))
            }
            _ => root,
        };
    }
    with_local_commands(root)
        .subcommand(import::command())
        .subcommand(connect::command())
        .subcommand(connect::disconnect_command())
        .subcommand(man::command())
}

/// Commands that are no op, or an op's with more to it.
fn with_local_commands(root: Command) -> Command {
    root.mut_subcommand("status", |command| {
        command
            .visible_alias("ps")
            .arg(
                Arg::new("http")
                    .long("http")
                    .action(ArgAction::SetTrue)
                    .conflicts_with("server")
                    .help("Show the address and the token for hosts over HTTP"),
            )
            .arg(
                Arg::new("tree")
                    .long("tree")
                    .action(ArgAction::SetTrue)
                    .conflicts_with_all(["server", "http"])
                    .help("Show the daemon's actors as they supervise each other"),
            )
    })
    .mut_subcommand("stop", |command| {
        command
            .override_usage("mcpx stop <NAME>\n       mcpx stop --daemon")
            .mut_arg("server", |arg| arg.required(false).required_unless_present("daemon"))
            .arg(
                Arg::new("daemon")
                    .long("daemon")
                    .action(ArgAction::SetTrue)
                    .conflicts_with("server")
                    .help("Stop the daemon, and every server with it"),
            )
    })
    .mut_subcommand("read", |command| {
        command.arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Write what it holds to this file"),
        )
    })
    .mut_subcommand("elicit", |command| {
        command.subcommand(
            Command::new("watch")
                .about("Wait for questions; on a terminal they are answered there, one by one"),
        )
    })
    .mut_subcommand("config", |command| {
        command
            .subcommand(
                Command::new("check").about("Check the configuration; all mistakes at once"),
            )
            .subcommand(Command::new("path").about("Show where the configuration is read from"))
    })
    .subcommand(
        Command::new("serve")
            .about("The stdio side of a host: give this command to it as an MCP server")
            .arg(
                Arg::new("project")
                    .long("project")
                    .value_name("DIR")
                    .value_parser(value_parser!(PathBuf))
                    .help("The project folder, in place of the one around the working directory"),
            )
            .arg(
                Arg::new("profile")
                    .long("profile")
                    .value_name("NAME")
                    .help("What this host sees: a profile of the configuration"),
            ),
    )
    .subcommand(daemon_command())
    .subcommands(install::tree())
    .subcommands(trust::tree())
    .subcommand(
        Command::new("completions").about("Print the completion script of a shell").arg(
            Arg::new("shell").required(true).value_parser(value_parser!(clap_complete::Shell)),
        ),
    )
    .subcommand(
        Command::new(setup::LAUNCH)
            .hide(true)
            .about("Start the daemon and end once it listens; no command for people"),
    )
    .subcommand(
        Command::new("demo-server")
            .hide(true)
            .about("The built-in upstream: a small MCP server on stdin and stdout"),
    )
}

fn daemon_command() -> Command {
    Command::new("daemon")
        .about("Run the daemon in the foreground")
        .arg(
            Arg::new("replace")
                .long("replace")
                .action(ArgAction::SetTrue)
                .help("Take over from a daemon that runs"),
        )
        .arg(
            Arg::new("set")
                .long("set")
                .value_name("KEY=VALUE")
                .action(ArgAction::Append)
                .help("Set a setting for this run"),
        )
        .arg(
            Arg::new("upstream-protocol")
                .long("upstream-protocol")
                .value_name("PREFERENCE")
                .help("Set upstream.protocol for this run"),
        )
        .arg(
            Arg::new("detached")
                .long("detached")
                .action(ArgAction::SetTrue)
                .hide(true)
                .help("Leave the session of whoever started it"),
        )
}

/// A group of commands; `mcpx settings` and `mcpx tasks` alone show them all.
fn group_of(name: &'static str) -> Command {
    let group = Command::new(name);
    match name {
        "settings" => group.about("Show and change settings"),
        "elicit" => {
            group.about("Questions of servers that wait for a person").subcommand_required(true)
        }
        "scripts" => group.about("Saved scripts"),
        "tasks" => group.about("Show and cancel calls that run as tasks"),
        _ => group.about("Show and check the configuration").subcommand_required(true),
    }
}

fn leaf(op: &'static Op, name: &'static str) -> Command {
    let command = Command::new(name).about(op.title).long_about(op.summary);
    op.params.iter().fold(command, |command, param| match argument(op, param) {
        Some(argument) => command.arg(argument),
        None => command,
    })
}

/// A parameter as an argument; `None` where the command line decides it by itself.
fn argument(op: &Op, param: &'static Param) -> Option<Arg> {
    let arg = Arg::new(param.name).help(param.doc);
    Some(match (param.name, param.kind) {
        // On a terminal progress is always wanted, elsewhere never; questions are always shown; a value
        // stands in `content`'s place.
        ("progress" | "questions" | "value", _) => return None,
        ("content", _) => {
            arg.value_name("JSON | KEY=VALUE | VALUE").action(ArgAction::Append).num_args(0..).help(
                "The fields of its form: KEY=VALUE each, one JSON object, or `-` for one on stdin; or \
                 the one value that it asks for",
            )
        }
        (_, ParamKind::Texts) => {
            arg.value_name("TOOL").action(ArgAction::Append).num_args(0..).requires("namespace")
        }
        ("query", _) => arg
            .value_name("WORDS")
            .action(ArgAction::Append)
            .num_args(1..)
            .required(true)
            .help("Words that say what a tool is to do, or its name"),
        ("namespace", _) if op.name == OpName::Search => {
            arg.long("namespace").value_name("NAMESPACE")
        }
        ("since", _) => arg.long("since").value_name("TIME"),
        ("outcome", _) => arg.long("outcome").value_name("OUTCOME"),
        ("kind", _) => arg.long("kind").value_name("KIND"),
        ("id", _) if op.name == OpName::Audit => arg.long("id").value_name("ID"),
        ("server", _) if matches!(op.name, OpName::Audit | OpName::Events) => {
            arg.long("server").value_name("NAME")
        }
        ("follow", _) => {
            arg.short('f').long("follow").action(ArgAction::SetTrue).help("Go on as new ones come")
        }
        ("project", _) => arg
            .long("project")
            .value_name("DIR")
            .value_parser(value_parser!(PathBuf))
            .help("The project folder, in place of the one around the working directory"),
        ("code", _) => arg.value_name("FILE").help(
            "The file that the script is in, TypeScript or JavaScript; `-`, or none, for stdin",
        ),
        ("input", _) => {
            arg.long("input").value_name("JSON").help("The value of `input` in the script, as JSON")
        }
        ("timeout", _) => arg
            .long("timeout")
            .value_name("SECONDS")
            .value_parser(value_parser!(u64))
            .help("How long it may run; at most exec.timeout"),
        ("arguments", _) => {
            arg.value_name("JSON | KEY=VALUE").action(ArgAction::Append).num_args(0..).help(
                "Its arguments: one JSON object, `-` for one on stdin, or KEY=VALUE each \
                   (KEY:=JSON for any JSON)",
            )
        }
        ("settings", _) => arg
            .value_name("KEY=VALUE")
            .action(ArgAction::Append)
            .num_args(1..)
            .required(true)
            .help("A setting and its value; nothing after `=` forgets what was set before"),
        (_, ParamKind::Count) => {
            arg.short('n').long(param.name).value_name("COUNT").value_parser(value_parser!(usize))
        }
        (_, ParamKind::Switch) => arg.long(param.name).action(ArgAction::SetTrue),
        (name, _) => {
            let shown = match (op.name, name) {
                (_, "namespace") => "NAMESPACE",
                (_, "tool") => "TOOL",
                (_, "uri") => "URI",
                (_, "prompt") => "PROMPT",
                (_, "task") => "TASK",
                (_, "key") => "KEY",
                (_, "id") => "ID",
                _ => "NAME",
            };
            let arg = arg.value_name(shown).required(param.required);
            if param.place == Place::Path {
                arg.value_parser(NonEmptyStringValueParser::new())
            } else {
                arg
            }
        }
    })
}

/// Runs what was asked for.
pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let file = matches.get_one::<PathBuf>("config").cloned();
    match matches.subcommand() {
        Some(("completions", arguments)) => commands::completions(arguments),
        Some(("man", arguments)) => man::run(arguments),
        Some(("demo-server", _)) => demo::run(),
        Some((setup::LAUNCH, _)) => daemon::launch(&Setup::find(file)?),
        Some(("serve", arguments)) => serve::run(&Setup::find(file)?, arguments),
        Some(("install", arguments)) => install::install(&Setup::find(file)?, arguments),
        Some(("uninstall", arguments)) => install::uninstall(arguments),
        Some(("daemon", arguments)) => daemon::run(Setup::find(file)?, arguments),
        Some((name @ ("import" | "connect" | "disconnect" | "trust" | "untrust"), arguments)) => {
            let setup = Setup::find(file)?;
            let printer = Printer::new(matches.get_flag("json"), setup.plain);
            match name {
                "trust" => trust::run(&setup, printer, arguments),
                "untrust" => trust::undo(&setup, printer, arguments),
                "import" => import::run(&Desk::new(&setup, printer)?, arguments),
                "connect" => connect::run(&Desk::lenient(&setup, printer)?, arguments),
                _ => connect::undo(&Desk::lenient(&setup, printer)?, arguments),
            }
        }
        Some((name, arguments)) => {
            let json = matches.get_flag("json");
            commands::run(&Setup::find(file)?, json, name, arguments)
        }
        None => Ok(()),
    }
}

/// The op of a command, by its words.
pub(crate) fn op_of(words: &[&str]) -> Option<OpName> {
    OPS.iter().find(|op| op.command == Some(words)).map(|op| op.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_sound_and_every_command_of_the_table_is_in_it() {
        tree().debug_assert();
        let tree = tree();
        for words in OPS.iter().filter_map(|op| op.command) {
            let leaf = words.iter().try_fold(&tree, |command, word| command.find_subcommand(word));
            assert!(leaf.is_some(), "{words:?}");
            assert!(op_of(words).is_some());
        }
    }

    #[test]
    fn stop_takes_a_server_or_the_daemon() {
        let parse = |words: &[&str]| tree().try_get_matches_from(words);
        assert!(parse(&["mcpx", "stop"]).is_err());
        assert!(parse(&["mcpx", "stop", "a"]).is_ok());
        assert!(parse(&["mcpx", "stop", "--daemon"]).is_ok());
        assert!(parse(&["mcpx", "stop", "a", "--daemon"]).is_err());
    }
}
