// Where and how to connect, as the network layer needs it.
#pragma once

#include <cstdint>
#include <string>

namespace holdfast::net {

enum class transport { tcp, unix_socket, tls };

struct tls_settings {
    bool verify = true;
    std::string ca_file;
    std::string ca_directory;
    std::string certificate_file;
    std::string key_file;
    std::string server_name;  // for SNI and for the name to verify; empty: the host
};

struct endpoint {
    transport kind = transport::tcp;
    std::string host;  // a name, or an address without brackets
    std::uint16_t port = 0;
    std::string path;  // of a unix socket
    tls_settings tls;
    std::string display;  // for error texts
};

}  // namespace holdfast::net
