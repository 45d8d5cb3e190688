// In place of tls_material.cpp in a build without OpenSSL.
#include <stdexcept>

#include "support/tls_material.hpp"

namespace holdfast::testing {

tls_material make_tls_material(const std::filesystem::path&) {
    throw std::logic_error("no certificates in a build without TLS; such a test belongs into a *_tls_test.cpp");
}

}  // namespace holdfast::testing
