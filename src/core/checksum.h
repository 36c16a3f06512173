#pragma once

#include <cstdint>
#include <string_view>

namespace nmt {

/// CRC-32 (ISO-HDLC: the one of zlib, PNG and Ethernet), continued from the checksum of the bytes
/// before.
std::uint32_t crc32(std::string_view bytes, std::uint32_t before = 0);

}  // namespace nmt
