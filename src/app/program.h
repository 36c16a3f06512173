#pragma once

#include "config/settings.h"
#include "core/error.h"

#include <functional>
#include <string_view>

namespace nmt::app {

/// A whole program: reads its arguments into the settings, answers --help, --version and
/// --build-info, sets the log level, runs the body, and returns the exit status. If the reader of
/// standard output closes the pipe, the program ends silently (SIGPIPE). A signal that ends the
/// program leaves no temporaries behind. Options without effect are an error on the command line,
/// and a warning in a configuration file, which may serve several programs and models.
///
///   int main(int argc, char** argv) {
///     SearchSpec search;
///     config::Settings settings("nmt-translate", "[OPTIONS] [MODEL]", "translates lines of text");
///     settings.add(config::fields(search)).positionals({"model"});
///     return app::run_tool(argc, argv, settings, [&] { ...; return ExitStatus::ok; });
///   }
///
/// The body checks the specs (config::check) and handles --dump-config (dump_if_asked). `on_error`
/// is called before an error is logged.
int run_tool(int argc, char** argv, config::Settings& settings,
             const std::function<ExitStatus()>& body, const std::function<void()>& on_error = {});

/// Prints the settings as YAML if --dump-config is given; returns true if the program is done.
bool dump_if_asked(const config::Settings& settings);

/// Writes to standard output and flushes. Error (failed): it cannot be written.
void print(std::string_view text);

/// Runs the body of a program, catches exceptions, and returns the exit status. An error is logged
/// as one line on standard error, and its kind determines the status (ExitStatus). `on_error` is
/// called before that.
int run_program(const std::function<int()>& body, const std::function<void()>& on_error = {});

}  // namespace nmt::app
