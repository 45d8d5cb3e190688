// What becomes of a server's reply on its way to the client: nothing, or whatever a broken or hostile server might say.
#pragma once

#include <string>
#include <vector>

#include "client/grant_record.hpp"
#include "support/choices.hpp"

namespace holdfast::fuzz {

struct tampered {
    std::vector<std::string> pieces;  // arrive one after the other, with time between them
    bool ends_link = false;
    bool is_late = false;
};

/// `reply`: one reply, or some messages.
tampered tamper(const std::string& reply, choices& choose, const grant_record& seen);
/// A message that nobody has sent.
std::string invented_push(choices& choose, const grant_record& seen);

}  // namespace holdfast::fuzz
