// Certificates for tests, made by OpenSSL (EC P-256), valid for a day.
#pragma once

#include <filesystem>

namespace holdfast::testing {

struct certificate_files {
    std::filesystem::path certificate;
    std::filesystem::path key;  // mode 0600
};

/// All as PEM files in one directory.
struct tls_material {
    std::filesystem::path ca;            // signed all of the following except the unrelated ones
    certificate_files server;            // DNS:localhost, IP:127.0.0.1
    certificate_files wrong_host;        // DNS:wrong.example
    certificate_files expired;           // DNS:localhost, IP:127.0.0.1, expired yesterday
    certificate_files not_yet_valid;     // the same, valid from tomorrow
    certificate_files client;            // for client authentication
    std::filesystem::path unrelated_ca;  // signed only the next one
    certificate_files unrelated_client;
};

tls_material make_tls_material(const std::filesystem::path& directory);

}  // namespace holdfast::testing
