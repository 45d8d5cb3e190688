// Who may ask the page's server.
//
// A page of any web site that a user looks at can make the browser send requests to this machine, and a name that its
// owner points to 127.0.0.1 (DNS rebinding) makes them look like requests to the own site. So the Host must be one that
// only this server has: an address in digits, `localhost`, or a name that was told. And whatever a browser says about
// where a request comes from must be this server itself. What a browser sends with a request for data it also must be
// able to read: links of other sites may open the page, which holds no data by itself.
//
// A token comes in `Authorization: Bearer TOKEN`, never in an address, where logs and other sites would see it.
#pragma once

#include "cli/web/http_server.hpp"

#include <optional>
#include <set>
#include <string>

namespace holdfast::cli {

struct web_guard {
    std::set<std::string> hosts = {};  // names beside localhost, in small letters
    std::string token = {};            // empty: none has any
    bool is_token_for_all = false;     // else for what changes something

    // Nothing if all is well.
    std::optional<http_answer> refuse(const http_request& asked) const;
    std::optional<http_answer> refuse_without_token(const http_request& asked) const;
};

// 128 random bits, in hexadecimal digits.
std::string random_token();

}  // namespace holdfast::cli
