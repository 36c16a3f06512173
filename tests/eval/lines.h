#pragma once

// Lines with difficult cases for tokenizers and metrics: entities, numbers, punctuation, an empty
// line, two spaces, other alphabets.

#include <string>
#include <vector>

namespace nmt::test {

inline const std::vector<std::string> hypotheses = {"Das ist ein kleiner Test, nicht wahr?",
                                                    "Der Mann geht über die Straße &amp; lacht.",
                                                    "1.234,5 Euro kosten 2-3 Dinge (ungefähr)...",
                                                    "",
                                                    "Ein Hund  läuft.",
                                                    "«Ja», sagte er – “vielleicht”. ΟΔΟΣ İ",
                                                    "Preis: $5,00/kg"};
inline const std::vector<std::string> references = {"Das ist ein kleiner Test, oder?",
                                                    "Der Mann geht über die Strasse & lacht.",
                                                    "1.234,5 Euro kosten ungefähr 2-3 Dinge ...",
                                                    "leer",
                                                    "Ein Hund läuft schnell.",
                                                    "«Ja», sagte sie – “vielleicht”. οδος i̇",
                                                    "Preis: $5,00 / kg"};

}  // namespace nmt::test
