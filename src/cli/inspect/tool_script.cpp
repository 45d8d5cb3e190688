#include "cli/inspect/tool_script.hpp"

#include "base/assert.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

namespace holdfast::cli {
namespace {

std::string sha1_of(std::string_view text) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    const int done = EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
    HOLDFAST_ASSERT(done == 1);
    std::string hex;
    for (unsigned i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
    return hex;
}

}  // namespace

tool_script::tool_script(std::string_view name, std::string_view text)
    : sha1_(sha1_of(text)), source_{name, sha1_, text} {}

}  // namespace holdfast::cli
