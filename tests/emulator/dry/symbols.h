#pragma once

#include <string>

namespace nmt::emulator {

/// The name of the kernel at this address of the program, from its symbol table, without namespaces
/// and parameters: "row_loss_kernel", "forward_kernel<Olrn>", "each: add_bias" for a kernel of
/// each() that add_bias() launches. "unknown" if the program has been stripped.
std::string kernel_name(const void* address);

/// Appends the name of a kernel's function, "forward_kernel", to the file that NMT_EMULATED_KERNELS
/// names, at its first launch.
void note_launch(const void* kernel);

/// The short form of a demangled name.
std::string short_name(const std::string& name);

}  // namespace nmt::emulator
