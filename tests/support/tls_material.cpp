#include "support/tls_material.hpp"

#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

namespace holdfast::testing {
namespace {

template <auto Free>
struct freed_by {
    template <typename T>
    void operator()(T* object) const noexcept {
        Free(object);
    }
};
using key_ptr = std::unique_ptr<EVP_PKEY, freed_by<&::EVP_PKEY_free>>;
using certificate_ptr = std::unique_ptr<X509, freed_by<&::X509_free>>;
using extension_ptr = std::unique_ptr<X509_EXTENSION, freed_by<&::X509_EXTENSION_free>>;
using file_ptr = std::unique_ptr<std::FILE, freed_by<&std::fclose>>;

struct identity {
    key_ptr key;
    certificate_ptr certificate;
};

struct wanted {
    std::string common_name;
    std::string alternative_names{};  // empty: none
    std::string usage{};              // extendedKeyUsage; empty: an authority
    long begins_s = -3600;            // relative to now
    long ends_s = 86400;
};

void check(bool fine, const char* what) {
    if (fine) return;
    char reason[256];
    ::ERR_error_string_n(::ERR_get_error(), reason, sizeof reason);
    throw std::runtime_error{std::string{what} + ": " + reason};
}

void add_extension(identity& subject, X509* issuer, int nid, const std::string& value) {
    X509V3_CTX context{};
    X509V3_set_ctx_nodb(&context);
    ::X509V3_set_ctx(&context, issuer, subject.certificate.get(), nullptr, nullptr, 0);
    const extension_ptr extension{::X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str())};
    check(extension != nullptr, value.c_str());
    check(::X509_add_ext(subject.certificate.get(), extension.get(), -1) == 1, "X509_add_ext");
}

void set_serial(X509* certificate) {
    std::uint64_t serial = 0;
    check(::RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1, "RAND_bytes");
    check(::ASN1_INTEGER_set_uint64(::X509_get_serialNumber(certificate), serial >> 1) == 1, "serial");
}

// Without an issuer the certificate is self-signed.
identity make_identity(const wanted& what, const identity* issuer) {
    identity made{key_ptr{::EVP_EC_gen("P-256")}, certificate_ptr{::X509_new()}};
    check(made.key != nullptr && made.certificate != nullptr, "EVP_EC_gen");
    X509* const certificate = made.certificate.get();
    ::X509_set_version(certificate, X509_VERSION_3);
    set_serial(certificate);
    ::X509_gmtime_adj(::X509_getm_notBefore(certificate), what.begins_s);
    ::X509_gmtime_adj(::X509_getm_notAfter(certificate), what.ends_s);
    ::X509_set_pubkey(certificate, made.key.get());
    X509_NAME* const name = ::X509_get_subject_name(certificate);
    check(
        ::X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                     reinterpret_cast<const unsigned char*>(what.common_name.c_str()), -1, -1, 0) == 1,
        "X509_NAME");
    X509* const signer = issuer != nullptr ? issuer->certificate.get() : certificate;
    ::X509_set_issuer_name(certificate, ::X509_get_subject_name(signer));
    add_extension(made, signer, NID_subject_key_identifier, "hash");
    add_extension(made, signer, NID_authority_key_identifier, "keyid:always");
    add_extension(made, signer, NID_basic_constraints, what.usage.empty() ? "critical,CA:TRUE" : "CA:FALSE");
    add_extension(made, signer, NID_key_usage,
                  what.usage.empty() ? "critical,keyCertSign,cRLSign" : "digitalSignature");
    if (!what.usage.empty()) add_extension(made, signer, NID_ext_key_usage, what.usage);
    if (!what.alternative_names.empty()) add_extension(made, signer, NID_subject_alt_name, what.alternative_names);
    EVP_PKEY* const signing_key = issuer != nullptr ? issuer->key.get() : made.key.get();
    check(::X509_sign(certificate, signing_key, ::EVP_sha256()) > 0, "X509_sign");
    return made;
}

file_ptr open_private(const std::filesystem::path& path) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    file_ptr file{fd >= 0 ? ::fdopen(fd, "w") : nullptr};
    if (file == nullptr) throw std::runtime_error{"cannot write " + path.string()};
    return file;
}

certificate_files save(const identity& what, const std::filesystem::path& stem) {
    const certificate_files files{.certificate = stem.string() + ".crt", .key = stem.string() + ".key"};
    const file_ptr certificate = open_private(files.certificate);
    check(::PEM_write_X509(certificate.get(), what.certificate.get()) == 1, "PEM_write_X509");
    const file_ptr key = open_private(files.key);
    check(::PEM_write_PrivateKey(key.get(), what.key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1,
          "PEM_write_PrivateKey");
    return files;
}

}  // namespace

tls_material make_tls_material(const std::filesystem::path& directory) {
    const std::string here = "DNS:localhost,IP:127.0.0.1";
    const std::string for_servers = "serverAuth,clientAuth";  // a redis-server is also a client of its primary
    const std::string for_clients = "clientAuth";
    const identity ca = make_identity({.common_name = "test authority"}, nullptr);
    const identity stranger = make_identity({.common_name = "unrelated authority"}, nullptr);
    const auto issue = [&](const std::string& file, const wanted& what, const identity& by) {
        return save(make_identity(what, &by), directory / file);
    };
    constexpr long day_s = 86400;
    return {
        .ca = save(ca, directory / "ca").certificate,
        .server = issue("server", {"localhost", here, for_servers}, ca),
        .wrong_host = issue("wrong_host", {"wrong.example", "DNS:wrong.example", for_servers}, ca),
        .expired = issue("expired", {"localhost", here, for_servers, -2 * day_s, -day_s}, ca),
        .not_yet_valid = issue("not_yet_valid", {"localhost", here, for_servers, day_s, 2 * day_s}, ca),
        .client = issue("client", {"test client", "", for_clients}, ca),
        .unrelated_ca = save(stranger, directory / "unrelated_ca").certificate,
        .unrelated_client = issue("unrelated_client", {"unrelated client", "", for_clients}, stranger),
    };
}

}  // namespace holdfast::testing
