#pragma once

#include "config/settings.h"
#include "core/error.h"

#include <functional>
#include <string_view>

namespace nmt::app {

/// A whole program: reads its arguments into the settings, answers --help, --version and
/// --build-info, sets the log level, runs the body, and returns the exit status. A reader of
/// standard output that goes away ends the program without a word (SIGPIPE).
///
///   int main(int argc, char** argv) {
///     SearchSpec search;
///     config::Settings settings("nmt-translate", "[OPTIONS] [MODEL]", "translates lines of text");
///     settings.add(config::fields(search)).positionals({"model"});
///     return app::run_tool(argc, argv, settings, [&] { ...; return ExitStatus::ok; });
///   }
///
/// The body checks the specs (config::check) and answers --dump-config where the program has one
/// (dump_if_asked). `on_error` comes before an error is told.
int run_tool(int argc, char** argv, config::Settings& settings,
             const std::function<ExitStatus()>& body, const std::function<void()>& on_error = {});

/// Prints the settings as YAML if --dump-config is given; returns true if the program is done.
bool dump_if_asked(const config::Settings& settings);

/// Writes to standard output and flushes. Error (failed): it cannot be written.
void print(std::string_view text);

/// Runs the body of a program and returns its exit status: the one place that catches. An error
/// becomes one line on standard error, without a stack trace, and the status of its kind
/// (ExitStatus). `on_error` comes before that line.
int run_program(const std::function<int()>& body, const std::function<void()>& on_error = {});

}  // namespace nmt::app
