#pragma once

#include <cstdint>
#include <string_view>

namespace nmt {

/// CRC-32/ISO-HDLC, as in zlib, PNG and Ethernet. `before` is the checksum of the preceding bytes.
std::uint32_t crc32(std::string_view bytes, std::uint32_t before = 0);

}  // namespace nmt
