// Translates standard input line by line: translate MODEL < INPUT > OUTPUT

#include <iostream>
#include <string>

#include <nmt/nmt.h>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: translate MODEL < INPUT > OUTPUT\n";
    return static_cast<int>(nmt::ExitStatus::usage);
  }
  try {
    nmt::Translator translator(argv[1], {.beam_size = 4, .cpu_threads = 2});
    translator.translate(
        [](std::string& line) { return static_cast<bool>(std::getline(std::cin, line)); },
        [](const nmt::Translation& translation) { std::cout << translation.text << '\n'; });
    if (!std::cout.flush()) {
      std::cerr << "error: standard output: cannot be written\n";
      return static_cast<int>(nmt::ExitStatus::failed);
    }
  } catch (const nmt::Error& error) {
    std::cerr << "error: " << error.what() << '\n';
    return static_cast<int>(error.status());
  }
}
